package grafana

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// schemaVersion is that of Grafana 11; later ones migrate it by themselves.
const schemaVersion = 39

// source refers to the data source that the reader chose.
var source = struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}{"prometheus", "${datasource}"}

type dashboard struct {
	Annotations   list      `json:"annotations"`
	Description   string    `json:"description"`
	Editable      bool      `json:"editable"`
	GraphTooltip  int       `json:"graphTooltip"`
	ID            *int      `json:"id"`
	Links         []any     `json:"links"`
	Panels        []any     `json:"panels"`
	Refresh       string    `json:"refresh"`
	SchemaVersion int       `json:"schemaVersion"`
	Tags          []string  `json:"tags"`
	Templating    list      `json:"templating"`
	Time          timeRange `json:"time"`
	Timezone      string    `json:"timezone"`
	Title         string    `json:"title"`
	UID           string    `json:"uid"`
	Version       int       `json:"version"`
}

type list struct {
	List []any `json:"list"`
}

type timeRange struct {
	From string `json:"from"`
	To   string `json:"to"`
}

type grid struct {
	H int `json:"h"`
	W int `json:"w"`
	X int `json:"x"`
	Y int `json:"y"`
}

type panel struct {
	Datasource      any      `json:"datasource"`
	Description     string   `json:"description"`
	FieldConfig     fields   `json:"fieldConfig"`
	GridPos         grid     `json:"gridPos"`
	ID              int      `json:"id"`
	Options         any      `json:"options"`
	Targets         []target `json:"targets"`
	Title           string   `json:"title"`
	Transformations []any    `json:"transformations,omitempty"`
	Type            string   `json:"type"`
}

type heading struct {
	Collapsed bool   `json:"collapsed"`
	GridPos   grid   `json:"gridPos"`
	ID        int    `json:"id"`
	Panels    []any  `json:"panels"`
	Title     string `json:"title"`
	Type      string `json:"type"`
}

type target struct {
	Datasource   any    `json:"datasource"`
	EditorMode   string `json:"editorMode"`
	Expr         string `json:"expr"`
	Format       string `json:"format,omitempty"`
	Instant      bool   `json:"instant,omitempty"`
	LegendFormat string `json:"legendFormat"`
	Range        bool   `json:"range"`
	RefID        string `json:"refId"`
}

type fields struct {
	Defaults  defaults `json:"defaults"`
	Overrides []any    `json:"overrides"`
}

type defaults struct {
	Color      any        `json:"color"`
	Custom     any        `json:"custom,omitempty"`
	Min        *int       `json:"min,omitempty"`
	NoValue    string     `json:"noValue,omitempty"`
	Thresholds thresholds `json:"thresholds"`
	Unit       Unit       `json:"unit"`
}

type thresholds struct {
	Mode  string `json:"mode"`
	Steps []step `json:"steps"`
}

type step struct {
	Color string   `json:"color"`
	Value *float64 `json:"value"`
}

// JSON is the dashboard as Grafana imports it, and as its sidecar loads it from a
// ConfigMap.
func (b *Board) JSON() ([]byte, error) {
	if err := b.Validate(); err != nil {
		return nil, fmt.Errorf("dashboard %s: %w", b.UID, err)
	}
	d := dashboard{
		Annotations: list{List: []any{}}, Description: b.Description, Editable: true, GraphTooltip: 1, Links: links(), Refresh: "30s",
		SchemaVersion: schemaVersion, Tags: []string{"relaypool"}, Templating: list{List: b.variables()},
		Time: timeRange{"now-3h", "now"}, Timezone: "browser", Title: b.Title, UID: b.UID, Version: 1,
	}
	id, y := 0, 0
	for i := range b.Rows {
		r := &b.Rows[i]
		id++
		d.Panels = append(d.Panels, heading{GridPos: grid{1, Columns, 0, y}, ID: id, Panels: []any{}, Title: r.Title, Type: "row"})
		places, height := r.Layout()
		for j, at := range places {
			id++
			d.Panels = append(d.Panels, r.Panels[j].json(id, grid{at.H, at.W, at.X, y + 1 + at.Y}))
		}
		y += 1 + height
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(d); err != nil {
		return nil, fmt.Errorf("encode dashboard %s: %w", b.UID, err)
	}
	return out.Bytes(), nil
}

// Place is where a panel is in its row, in Grafana's grid.
type Place struct{ X, Y, W, H int }

// Layout places a row's panels from left to right, in lines, and gives the height
// of all.
func (r *Row) Layout() (places []Place, height int) {
	x, y, line := 0, 0, 0
	for i := range r.Panels {
		p := &r.Panels[i]
		if x+p.width() > Columns {
			x, y, line = 0, y+line, 0
		}
		places = append(places, Place{x, y, p.width(), p.height()})
		x, line = x+p.width(), max(line, p.height())
	}
	return places, y + line
}

// links lead from each dashboard to the others.
func links() []any {
	return []any{map[string]any{
		"asDropdown": false, "icon": "external link", "includeVars": true, "keepTime": true, "tags": []string{"relaypool"},
		"targetBlank": false, "title": "Relaypool", "tooltip": "", "type": "dashboards", "url": "",
	}}
}

func (b *Board) variables() []any {
	all := []any{map[string]any{
		"current": map[string]any{}, "hide": 0, "includeAll": false, "label": "Prometheus", "multi": false, "name": "datasource",
		"options": []any{}, "query": "prometheus", "refresh": 1, "regex": "", "skipUrlSync": false, "type": "datasource",
	}}
	for _, v := range b.Variables {
		all = append(all, map[string]any{
			"allValue": ".+", "current": map[string]any{"selected": true, "text": []string{"All"}, "value": []string{"$__all"}},
			"datasource": source, "definition": v.Values, "hide": 0, "includeAll": true, "label": v.Title, "multi": true, "name": v.Name,
			"options": []any{}, "query": map[string]any{"qryType": 1, "query": v.Values, "refId": "PrometheusVariableQueryEditor-VariableQuery"},
			"refresh": 2, "regex": "", "skipUrlSync": false, "sort": 1, "type": "query",
		})
	}
	return all
}

func (p *Panel) json(id int, at grid) panel {
	out := panel{
		Datasource: source, Description: p.Description(), GridPos: at, ID: id, Title: p.Title,
		FieldConfig: fields{Overrides: []any{}, Defaults: defaults{Unit: p.Unit, Thresholds: p.thresholds(), Color: map[string]any{"mode": "palette-classic"}}},
	}
	for i, q := range p.Queries {
		t := target{Datasource: source, EditorMode: "code", Expr: q.Expr, LegendFormat: q.Legend, Range: true, RefID: string(rune('A' + i))}
		if p.Kind == Table {
			t.Range, t.Instant, t.Format = false, true, "table"
		}
		out.Targets = append(out.Targets, t)
	}
	zero := 0
	switch p.Kind {
	case Curves, Areas:
		out.Type, out.FieldConfig.Defaults.Min, out.FieldConfig.Defaults.Custom = "timeseries", &zero, p.curves()
		if p.Unit == Lamports || p.Log {
			out.FieldConfig.Defaults.Min = nil // a difference is below 0 as well, and 0 has no logarithm
		}
		out.Options = map[string]any{
			"legend":  map[string]any{"calcs": []string{"lastNotNull", "max"}, "displayMode": "table", "placement": "bottom", "showLegend": true},
			"tooltip": map[string]any{"mode": "multi", "sort": "desc"},
		}
	case Numbers:
		out.Type, out.FieldConfig.Defaults.NoValue = "stat", "none"
		out.FieldConfig.Defaults.Color = map[string]any{"mode": "thresholds"}
		out.Options = map[string]any{
			"colorMode": "value", "graphMode": "area", "justifyMode": "auto", "orientation": "auto", "textMode": "auto",
			"reduceOptions": map[string]any{"calcs": []string{"lastNotNull"}, "fields": "", "values": false},
		}
	case Table:
		out.Type = "table"
		out.Options = map[string]any{"cellHeight": "sm", "showHeader": true}
		out.Transformations = []any{map[string]any{"id": "organize", "options": map[string]any{"excludeByName": map[string]bool{"Time": true}}}}
	}
	return out
}

func (p *Panel) curves() map[string]any {
	stacking, fill := "none", 8
	if p.Kind == Areas {
		stacking, fill = "normal", 35
	}
	style := "off"
	if p.Warn != 0 || p.Alarm != 0 {
		style = "dashed"
	}
	scale := map[string]any{"type": "linear"}
	if p.Log {
		scale = map[string]any{"type": "log", "log": 10}
	}
	return map[string]any{
		"scaleDistribution": scale,
		"drawStyle":         "line", "fillOpacity": fill, "lineWidth": 1, "showPoints": "never", "spanNulls": false,
		"stacking": map[string]any{"group": "A", "mode": stacking}, "thresholdsStyle": map[string]any{"mode": style},
	}
}

// thresholds colour what is bad.
func (p *Panel) thresholds() thresholds {
	t := thresholds{Mode: "absolute", Steps: []step{{Color: "green"}}}
	switch {
	case p.Warn == 0 && p.Alarm == 0:
	case p.Below:
		t.Steps = []step{{Color: "red"}, {"orange", &p.Alarm}, {"green", &p.Warn}}
	case p.Warn == p.Alarm:
		t.Steps = append(t.Steps, step{"red", &p.Alarm})
	default:
		t.Steps = append(t.Steps, step{"orange", &p.Warn}, step{"red", &p.Alarm})
	}
	return t
}
