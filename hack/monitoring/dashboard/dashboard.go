// Package dashboard reads the chart's Grafana dashboards, and draws them for the
// documents with the values of a real fleet.
package dashboard

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Folder is where the dashboards are, from the checkout's root: the chart makes ConfigMaps of them.
const Folder = "charts/relaypool/dashboards"

// Columns is the width of a dashboard in Grafana's grid.
const Columns = 24

// Dashboard has the fields of a Grafana dashboard that tests and pictures need.
type Dashboard struct {
	UID, Title, Description string
	Panels                  []Panel
}

// Panel shows some queries; a panel of type row is a heading.
type Panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	FieldConfig              struct {
		Defaults struct {
			Unit   string
			Custom struct {
				ScaleDistribution struct{ Type string }
				Stacking          struct{ Mode string }
			}
			Thresholds struct {
				Steps []struct {
					Color string
					Value *float64
				}
			}
		}
	}
	Targets []Target
}

// Target is a PromQL expression over the dashboard's variables; LegendFormat names its series.
type Target struct {
	Datasource         struct{ UID string }
	Expr, LegendFormat string
}

// Read reads all dashboards, in the order of their files' names.
func Read(root string) (all []*Dashboard, err error) {
	files, err := filepath.Glob(filepath.Join(root, Folder, "*.json"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		content, err := os.ReadFile(filepath.Clean(file))
		if err != nil {
			return nil, fmt.Errorf("read dashboard: %w", err)
		}
		d := &Dashboard{}
		if err := json.Unmarshal(content, d); err != nil {
			return nil, fmt.Errorf("read dashboard %s: %w", file, err)
		}
		all = append(all, d)
	}
	return all, nil
}

// Fill writes a reader's selection into a query, as Grafana does before it queries Prometheus:
// regular expressions of namespaces and RelayPools, and the window of rates, such as 1m.
func Fill(expr, namespace, pool, rateInterval string) string {
	return strings.NewReplacer("$namespace", namespace, "$pool", pool, "$__rate_interval", rateInterval).Replace(expr)
}
