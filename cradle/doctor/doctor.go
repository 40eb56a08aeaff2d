// Package doctor looks for the programs cradle and squire need and says what is missing and what to do about it.
package doctor

import (
	"bytes"
	"cmp"
	"context"
	"regexp"
	"strconv"
	"sync"
	"time"

	"pi-cradle/internal/run"
)

// Status is what a check found.
type Status string

const (
	OK       Status = "ok"
	Missing  Status = "missing"
	Outdated Status = "outdated"
	Hidden   Status = "hidden" // there, and out of reach inside the sandbox
)

// Finding is the result of one check. Path and Version are empty when unknown; Hint is empty when all is well.
type Finding struct {
	Name     string `json:"name"`
	Status   Status `json:"status"`
	Required bool   `json:"required"`
	Path     string `json:"path,omitempty"`
	Version  string `json:"version,omitempty"`
	Hint     string `json:"hint,omitempty"`
}

// Report holds the programs that cradle starts first, and after them how they fit together and what delegating needs, each in
// a fixed order.
type Report struct {
	Healthy bool      `json:"healthy"` // nothing required is missing
	Cradle  []Finding `json:"cradle"`
	More    []Finding `json:"more"`
}

// check is one program to look for.
type check struct {
	name     string
	required bool
	version  []string // arguments that make it print its version; nil: don't ask
	least    release  // the oldest release that will do; zero: any
	missing  string   // what to do when it is not there
	outdated string   // what to do when it is older than least
}

type release struct{ major, minor int }

// Find looks a program up and gives its path.
type Find func(name string) (path string, ok bool)

// Host is where to look.
type Host struct {
	Platform string // as runtime.GOOS has it
	Home     string
	Find     Find
}

// Examine carries out all checks side by side.
func Examine(ctx context.Context, host Host) Report {
	cradle, squire := cradleChecks(host.Platform), squireChecks()
	findings := make([]Finding, len(cradle)+len(squire))
	var wg sync.WaitGroup
	for i, c := range append(cradle, squire...) {
		wg.Go(func() { findings[i] = c.examine(ctx, host.Find) })
	}
	var piInside Finding
	var asked bool
	wg.Go(func() { piInside, asked = inside(ctx, host) })
	wg.Wait()
	r := Report{Healthy: true, Cradle: findings[:len(cradle):len(cradle)], More: findings[len(cradle):]}
	if asked {
		r.More = append([]Finding{piInside}, r.More...)
	}
	for _, f := range findings {
		r.Healthy = r.Healthy && !(f.Required && f.Status == Missing)
	}
	return r
}

func (c check) examine(ctx context.Context, find Find) Finding {
	f := Finding{Name: c.name, Required: c.required, Status: OK}
	path, ok := find(c.name)
	if !ok {
		f.Status, f.Hint = Missing, c.missing
		return f
	}
	f.Path = path
	if c.version != nil {
		f.Version = readVersion(ctx, path, c.version)
	}
	if got, ok := parseRelease(f.Version); ok && got.before(c.least) {
		f.Status, f.Hint = Outdated, c.outdated
	}
	return f
}

// PiVersion asks the pi at path for its version; "" when it has none to tell.
func PiVersion(ctx context.Context, path string) string {
	return readVersion(ctx, path, []string{"--version"})
}

// probeTimeout bounds a version probe; a cold Node on a busy machine takes a second or two.
const probeTimeout = 15 * time.Second

// The trailing class is greedy on purpose: a pre-release tail belongs to the version.
var versionShape = regexp.MustCompile(`v?[0-9]+\.[0-9]+\S*`)

func readVersion(ctx context.Context, path string, args []string) string {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	res, err := run.Output(ctx, run.Cmd{Path: path, Args: args})
	if err != nil {
		return ""
	}
	line, _, _ := bytes.Cut(res.Stdout, []byte("\n"))
	return string(versionShape.Find(line))
}

var releaseShape = regexp.MustCompile(`^v?([0-9]+)\.([0-9]+)`)

func parseRelease(version string) (release, bool) {
	m := releaseShape.FindStringSubmatch(version)
	if m == nil {
		return release{}, false
	}
	major, err1 := strconv.Atoi(m[1])
	minor, err2 := strconv.Atoi(m[2])
	return release{major, minor}, err1 == nil && err2 == nil
}

func (r release) before(other release) bool {
	return cmp.Or(cmp.Compare(r.major, other.major), cmp.Compare(r.minor, other.minor)) < 0
}
