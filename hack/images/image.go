package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing/fstest"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	blobs, dockerList = "blobs/sha256/", "manifest.json"
	// containerdName is the annotation with an image's name for containerd.
	containerdName = "io.containerd.image.name"
	repository     = "https://github.com/relaypool/relaypool"
	// searchPath is the PATH that Docker sets in every image built from scratch.
	searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// product describes an image. Its program has the same name, and is package pkg. module is the
// module's folder for a program of others, whose image is never published: it needs no licences.
// tags are build tags, separated by commas.
type product struct{ name, title, description, module, pkg, license, tags string }

var (
	platformList = regexp.MustCompile(`^linux/(amd64|arm64)(,linux/(amd64|arm64))*$`)
	released     = []product{
		{"operator", "Relaypool operator", "Keeps fleets of relays for shielded pools on Solana as RelayPools declare them", "", "./controllers/cmd/operator", "Apache-2.0", ""},
		{"relay", "Relaypool relay", "Takes proofs of a shielded pool on Solana, pays the network's fee and puts the transactions on the chain", "", "./relay/cmd/relay", "Apache-2.0", ""},
	}
	// The images for tests have no version: they are built, loaded and deleted.
	forTests = []product{
		{"localnet", "Relaypool localnet, for tests alone", "A local chain with the development key", "", "./hack/localnet/cmd/localnet", "Apache-2.0", ""},
		{"gate", "Relaypool gate, for tests alone", "The end-to-end suite's way into a cluster", "", "./hack/e2e/cmd/gate", "Apache-2.0", ""},
		{"postgres", "Postgres, for tests alone", "Debian's Postgres, started as the official image starts it", "", "", "PostgreSQL", ""},
		{"vault", "Vault, for tests alone", "A Vault in memory", "hack/vault", ".", "BUSL-1.1", ""},
		{"traefik", "Traefik, for tests alone", "An ingress controller", "hack/tools/traefik", "github.com/traefik/traefik/v3/cmd/traefik", "MIT", ""},
		{"keda", "KEDA, for tests alone", "KEDA's operator", "hack/tools/keda", "github.com/kedacore/keda/v2/cmd/operator", "Apache-2.0", ""},
		{"keda-adapter", "KEDA's metrics server, for tests alone", "KEDA's server of external metrics", "hack/tools/keda", "github.com/kedacore/keda/v2/cmd/adapter", "Apache-2.0", ""},
		{"prometheus-server", "Prometheus, for tests alone", "Prometheus in a cluster", "hack/tools/prometheus", "github.com/prometheus/prometheus/cmd/prometheus", "Apache-2.0", "remove_all_sd,enable_kubernetes_sd"},
		{"prometheus-operator", "The Prometheus operator, for tests alone", "Runs Prometheus as monitors say", "hack/tools/prometheus-operator", "github.com/prometheus-operator/prometheus-operator/cmd/operator", "Apache-2.0", ""},
		{"prometheus-reloader", "The Prometheus operator's reloader, for tests alone", "Tells Prometheus of a new configuration", "hack/tools/prometheus-operator", "github.com/prometheus-operator/prometheus-operator/cmd/prometheus-config-reloader", "Apache-2.0", ""},
	}
)

func (s *source) configuration(p product) v1.Config {
	const prefix = "org.opencontainers.image." // OCI's own annotations
	return v1.Config{Entrypoint: []string{"/" + p.name}, User: "65532:65532", WorkingDir: "/", Env: []string{searchPath}, Labels: map[string]string{
		prefix + "title": p.title, prefix + "description": p.description, prefix + "licenses": p.license, prefix + "vendor": "relaypool",
		prefix + "version": s.version, prefix + "revision": s.revision, prefix + "created": s.created.Format(time.RFC3339),
		prefix + "source": repository, prefix + "documentation": repository + "/blob/main/docs/guides/images.md",
	}}
}

func (t *tool) build(ctx context.Context) error { return t.makeImages(ctx, released, "bin/images") }

// e2e builds the suite's images for this machine's architecture.
func (t *tool) e2e(ctx context.Context) error {
	t.version, t.registry, t.platform = "dev", "docker.io/relaypool", "linux/"+runtime.GOARCH
	return t.makeImages(ctx, forTests, "bin/images/e2e")
}

// rootfs writes the files of one image, for the Dockerfile.
func (t *tool) rootfs(ctx context.Context) error {
	if t.filesOnly = true; t.image == "" || t.out == "" {
		return errors.New("-image or -out is missing: name the image and a folder for its files")
	}
	return t.makeImages(ctx, released, "")
}

// makeImages writes the archive, SBOM and digest of each image for each platform, and
// the OCI layout with an index of each image.
func (t *tool) makeImages(ctx context.Context, all []product, defaultOut string) error {
	products := slices.DeleteFunc(slices.Clone(all), func(p product) bool { return t.image != "" && t.image != p.name })
	if len(products) == 0 || !platformList.MatchString(t.platform) {
		return fmt.Errorf("image %q for %q: want operator or relay, or with e2e localnet, gate, postgres, vault, traefik, keda, keda-adapter, prometheus-server, prometheus-operator or prometheus-reloader, for linux/amd64, linux/arm64, or both with a comma", t.image, t.platform)
	}
	t.out = cmp.Or(t.out, filepath.Join(t.root, defaultOut))
	err := os.MkdirAll(t.out, 0o750)
	layout, indexes, digests := tree{}, []v1.Descriptor{}, ""
	for _, p := range products {
		tag, err := name.NewTag(t.registry+"/"+p.name+":"+t.version, name.StrictValidation)
		if err != nil {
			return err
		}
		index := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex}
		for i, text := range strings.Split(t.platform, ",") {
			platform := &v1.Platform{OS: "linux", Architecture: path.Base(text)}
			started, file := time.Now(), filepath.Join(t.out, p.name)
			if i > 0 { // the first platform's archive has the plain name
				file += "-linux-" + platform.Architecture
			}
			files, config, err := t.stage(ctx, p, platform)
			if t.filesOnly && err == nil {
				return errors.Join(os.CopyFS(t.out, files), os.Chmod(filepath.Join(t.out, "tmp"), files["tmp"].Mode))
			}
			if err != nil {
				return fmt.Errorf("collect the files of %s for %s: %w", p.name, platform, err)
			}
			content, image, err := newImage(files, v1.ConfigFile{OS: platform.OS, Architecture: platform.Architecture, Created: v1.Time{Time: t.created}, Config: config}, tag)
			packed, failed := pack(content, t.created)
			err = errors.Join(err, failed, os.WriteFile(file+".tar", packed, 0o644)) //nolint:gosec // images are public
			if p.pkg != "" && p.module == "" {
				document, failed := t.sbom(tag.Name(), image.Digest, files[p.name].Data)
				err = errors.Join(err, failed, os.WriteFile(file+".spdx.json", document, 0o644)) //nolint:gosec // SBOMs are public
			}
			if err != nil {
				return fmt.Errorf("make the image %s for %s: %w", p.name, platform, err)
			}
			maps.Copy(layout, content)
			image.Annotations, image.Platform = nil, platform
			index.Manifests = append(index.Manifests, image)
			digests += fmt.Sprintf("%s  %s  %s\n", image.Digest, tag, platform)
			fmt.Fprintf(t.stdout, "%s.tar  %s  %s  %s  in %.1f s\n", file, tag, platform, image.Digest, time.Since(started).Seconds())
		}
		if len(t.oci) > 0 {
			indexes = append(indexes, named(add(layout, index.MediaType, index), tag))
			digests += fmt.Sprintf("%s  %s  index\n", indexes[len(indexes)-1].Digest, tag)
		}
	}
	list(layout, indexes...)
	delete(layout, dockerList)
	for _, folder := range t.oci {
		err = errors.Join(err, os.RemoveAll(folder), os.CopyFS(folder, layout))
	}
	return errors.Join(err, os.WriteFile(filepath.Join(t.out, "digests.txt"), []byte(digests), 0o644)) //nolint:gosec // digests are public
}

func (s *source) stage(ctx context.Context, p product, platform *v1.Platform) (tree, v1.Config, error) {
	config := s.configuration(p)
	if p.pkg == "" {
		return s.stagePostgres(ctx, config)
	}
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil { // the file cannot express a constraint
			roots.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	program, failed := s.compile(ctx, filepath.Join(s.root, p.module), p.pkg, p.tags, platform)
	license, err := os.ReadFile(filepath.Join(s.root, "LICENSE"))
	files := tree{
		p.name: {Data: program, Mode: 0o755}, "licenses/LICENSE": text(license), "tmp": {Mode: fs.ModeDir | fs.ModeSticky | 0o777},
		"etc/group": text("root:x:0:\nnonroot:x:65532:\n"), "etc/ssl/certs/ca-certificates.crt": text(roots.Bytes()),
		"etc/passwd": text("root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n"),
	}
	if p.name == "localnet" { // its pool uses the development key
		key, unread := os.ReadFile(filepath.Join(s.root, "hack", "circuit", "verification_key.json"))
		files["verification_key.json"], err = text(key), errors.Join(err, unread)
		config.Entrypoint = append(config.Entrypoint, "-vk", "/verification_key.json")
	}
	if p.module == "" {
		err = errors.Join(err, s.addLicenses(ctx, files, p, platform))
	}
	return files, config, errors.Join(failed, err)
}

// postgresFiles prints the server's folder, and then the files of the image: the server's
// programs without extensions, the entry point's commands, their libraries, and initdb's input.
const postgresFiles = `set -e
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1) version=$(basename "$(dirname "$bin")")
lib=/usr/lib/postgresql/$version/lib share=/usr/share/postgresql/$version zones=/usr/share/zoneinfo
programs="/bin/sh /bin/rm /bin/mv $bin/initdb $bin/postgres $bin/pg_isready $lib/plpgsql.so $lib/dict_snowball.so $lib/libpqwalreceiver.so $lib/pgoutput.so"
echo "$bin"; ls $programs $share/*.* $share/extension/plpgsql* $share/timezonesets/* $share/tsearch_data/* $zones/UTC $zones/Etc/UTC $zones/GMT /usr/share/doc/postgresql-$version/copyright
ldd $programs | sed -n 's|^[^/]*\(/[^ ]*\) (0x.*|\1|p'`

// stagePostgres returns the files of this machine's Postgres server, which comes from Debian's
// packages, and the image's configuration.
func (s *source) stagePostgres(ctx context.Context, config v1.Config) (tree, v1.Config, error) {
	listed, err := output(ctx, "/", nil, "sh", "-c", postgresFiles)
	if err != nil {
		return nil, config, fmt.Errorf("list the files of Postgres; without it, run `apt-get install postgresql` as root on Debian or Ubuntu: %w", err)
	}
	script, err := os.ReadFile(filepath.Join(s.root, "hack", "images", "postgres-entrypoint.sh"))
	files := tree{"entrypoint.sh": text(script), "etc/passwd": text("postgres:x:999:999::/:/sbin/nologin\n"), "etc/group": text("postgres:x:999:\n")}
	all := strings.Fields(listed)
	for _, file := range all[1:] {
		content, unread := os.ReadFile(file)
		files[file[1:]], err = &fstest.MapFile{Data: content, Mode: 0o755}, errors.Join(err, unread)
	}
	config.User, config.StopSignal, config.Entrypoint = "999:999", "SIGINT", []string{"/bin/sh", "/entrypoint.sh"}
	config.Env = []string{searchPath + ":" + all[0], "PGDATA=/var/lib/postgresql/data/pgdata"}
	return files, config, err
}

// tree maps paths to files in memory: the files of an image, of an archive, or of an OCI
// layout.
type tree = fstest.MapFS

func text[T string | []byte](content T) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte(content), Mode: 0o644}
}

// pack returns a tar of files, all owned by root and with the time at. Folders precede their files.
func pack(files tree, at time.Time) ([]byte, error) {
	for file := range maps.Clone(files) {
		files[file].ModTime = at
		for folder := path.Dir(file); folder != "." && files[folder] == nil; folder = path.Dir(folder) {
			files[folder] = &fstest.MapFile{Mode: fs.ModeDir | 0o755, ModTime: at}
		}
	}
	var content bytes.Buffer
	out := tar.NewWriter(&content)
	err := errors.Join(out.AddFS(files), out.Close())
	return content.Bytes(), err
}

// add adds a blob to a layout: bytes, or JSON of one of OCI's types, whose encoding cannot fail.
func add(to tree, kind types.MediaType, content any) v1.Descriptor {
	raw, isRaw := content.([]byte)
	if !isRaw {
		raw, _ = json.Marshal(content)
	}
	digest, size, _ := v1.SHA256(bytes.NewReader(raw))
	to[blobs+digest.Hex] = text(raw)
	return v1.Descriptor{MediaType: kind, Digest: digest, Size: size}
}

// newImage makes an image of one layer, and returns the files of its `docker save` archive: an
// OCI layout, with which containerd keeps the digest, and manifest.json for Docker before
// version 25. The same files and configuration give the same digest.
func newImage(files tree, config v1.ConfigFile, tag name.Tag) (content tree, image v1.Descriptor, err error) {
	layer, err := pack(files, config.Created.Time)
	var packed bytes.Buffer
	out := gzip.NewWriter(&packed)
	_, failed := out.Write(layer)
	err = errors.Join(err, failed, out.Close())
	content = tree{}
	config.History = []v1.History{{Created: config.Created, CreatedBy: "hack/images"}}
	config.RootFS = v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{add(tree{}, "", layer).Digest}}
	manifest := v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Config: add(content, types.OCIConfigJSON, config),
		Layers: []v1.Descriptor{add(content, types.OCILayer, packed.Bytes())},
	}
	image = named(add(content, manifest.MediaType, manifest), tag)
	list(content, image)
	docker, _ := json.Marshal([]map[string]any{{
		"Config": blobs + manifest.Config.Digest.Hex, "Layers": []string{blobs + manifest.Layers[0].Digest.Hex},
		"RepoTags": []string{strings.TrimPrefix(image.Annotations[containerdName], "docker.io/")},
	}})
	content[dockerList] = text(docker)
	return content, image, err
}

// named gives a descriptor the annotations with an image's name for container engines.
func named(d v1.Descriptor, tag name.Tag) v1.Descriptor {
	full := strings.Replace(tag.Name(), name.DefaultRegistry, "docker.io", 1)
	d.Annotations = map[string]string{containerdName: full, "org.opencontainers.image.ref.name": tag.TagStr()}
	return d
}

// list completes a layout with its index.
func list(in tree, listed ...v1.Descriptor) {
	index, _ := json.Marshal(v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: listed})
	in["index.json"], in["oci-layout"] = text(index), text(`{"imageLayoutVersion":"1.0.0"}`)
}
