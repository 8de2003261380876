// Package charts brings charts from elsewhere, and what charts depend on, into
// the drafts of bundles, and pins them there: what a bundle holds is rendered
// without any network.
package charts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/flotilla-sh/flotilla/internal/bundle"
	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/source"
	"github.com/flotilla-sh/flotilla/internal/source/chart"
	"github.com/flotilla-sh/flotilla/internal/source/chartref"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// Refresh says which charts are looked for anew.
type Refresh int

const (
	// Keep takes what the bundle has already.
	Keep Refresh = iota
	// Newer looks for newer ones where the name allows any, such as a constraint.
	Newer
	// All looks for every chart again.
	All
)

// Input is a draft and what is known of its charts.
type Input struct {
	Draft *bundle.Draft
	// Tree is the repository that the draft comes from; nil for none.
	Tree fs.FS
	// Access is how servers are reached.
	Access chart.Access
	// Have are the charts that the bundle has.
	Have []fleet.BundleChart
	// Stored returns the files that the bundle has; nil where there are none.
	Stored func(context.Context) ([]source.File, error)
	// Refresh says which of Have are looked for anew.
	Refresh Refresh
}

// Packer brings charts into drafts. All that it brings is of one moment. It is
// not safe for concurrent use.
type Packer struct {
	fetcher  *chart.Fetcher
	sessions map[string]*chart.Session
}

// NewPacker returns a Packer, which is to be closed.
func NewPacker(f *chart.Fetcher) *Packer {
	return &Packer{fetcher: f, sessions: map[string]*chart.Session{}}
}

// Close ends the work.
func (p *Packer) Close() {
	for _, s := range p.sessions {
		s.Close()
	}
}

func (p *Packer) session(a chart.Access) *chart.Session {
	id := a.Identity()
	if p.sessions[id] == nil {
		p.sessions[id] = p.fetcher.Open(a)
	}
	return p.sessions[id]
}

// Needed tells whether a draft has charts to bring.
func Needed(d *bundle.Draft) bool {
	if d.Err != nil {
		return false
	}
	all, err := usesOf(&d.Spec)
	if err != nil {
		return true
	}
	for _, u := range all {
		if u.remote() {
			return true
		}
		if dir := u.dir(); !u.noDependencies && len(missing(d.Files, dir)) > 0 {
			return true
		}
	}
	return false
}

// Fill brings the charts of a draft into its files, and writes into its spec
// what they are.
func (p *Packer) Fill(ctx context.Context, in Input) error {
	all, err := usesOf(&in.Draft.Spec)
	if err != nil {
		return located(in.Draft, err)
	}
	f := &filling{Input: in, session: p.session(in.Access), room: p.fetcher.Limits().Size, limit: p.fetcher.Limits().Size, files: slices.Clone(in.Draft.Files)}
	for _, u := range all {
		if err := f.use(ctx, u); err != nil {
			return located(in.Draft, err)
		}
	}
	slices.SortFunc(f.pins, func(a, b fleet.BundleChart) int { return strings.Compare(a.Dir, b.Dir) })
	in.Draft.SetFiles(f.files)
	in.Draft.Spec.Charts = f.pins
	in.Draft.Warnings = append(in.Draft.Warnings, f.warnings...)
	return nil
}

// located says with which file an error is, unless it says that itself.
func located(d *bundle.Draft, err error) error {
	if slices.ContainsFunc(fault.Notes(err), func(n fault.Note) bool { return n.File != "" }) {
		return err
	}
	if d.Config == "" {
		return fmt.Errorf("%s: %w", d.Path, err)
	}
	return fault.At(d.Config, 0, err)
}

// filling is the work on one draft.
type filling struct {
	Input
	session  *chart.Session
	room     int64 // that is left for charts
	limit    int64 // of all charts together
	files    []source.File
	pins     []fleet.BundleChart
	warnings []fault.Note
	stored   []source.File
	asked    bool // for stored
}

// use brings one chart.
func (f *filling) use(ctx context.Context, u use) error {
	if !u.remote() {
		if u.noDependencies {
			return nil
		}
		return f.complete(ctx, u.dir(), f.besideInTree(u.dir()), 0)
	}
	got, err := f.bring(ctx, u.want(), u.dir())
	if err != nil || got == nil || u.noDependencies {
		return err
	}
	return f.complete(ctx, u.dir(), got.Beside, 0)
}

// bring adds a chart to the files, below dir. It returns nil where the chart
// came whole, with all it depends on, from what the bundle has.
func (f *filling) bring(ctx context.Context, w chart.Want, dir string) (*chart.Chart, error) {
	f.session.Within(f.room)
	got, err := f.fetch(ctx, w, dir)
	if f.room < f.limit && fault.ReasonOf(err, "") == chart.ReasonTooLarge {
		return nil, errTogether
	}
	return got, err
}

// fetch adds a chart that fits into what is left of the room.
func (f *filling) fetch(ctx context.Context, w chart.Want, dir string) (*chart.Chart, error) {
	pin := f.pinned(w, dir)
	if pin != nil {
		kept, err := f.session.Kept(w, chart.Pin{Version: pin.Version, Digest: pin.Digest})
		if err != nil {
			return nil, err
		}
		if kept != nil {
			return kept, f.add(w, dir, kept)
		}
		if f.recover(ctx, dir) {
			return nil, nil //nolint:nilnil // there is nothing more to do
		}
	}
	got, err := f.session.Fetch(ctx, w, pinOf(pin))
	if err != nil {
		return nil, err
	}
	return got, f.add(w, dir, got)
}

func pinOf(have *fleet.BundleChart) *chart.Pin {
	if have == nil {
		return nil
	}
	return &chart.Pin{Version: have.Version, Digest: have.Digest}
}

// pinned returns what the bundle has of a chart, where that is to be kept.
func (f *filling) pinned(w chart.Want, dir string) *fleet.BundleChart {
	if f.Refresh == All || f.Refresh == Newer && !chart.Exact(w) {
		return nil
	}
	for i := range f.Have {
		have := &f.Have[i]
		if have.Repo == w.Repo && have.Chart == w.Chart && have.Constraint == w.Version && have.Dir == dir && have.Digest != "" {
			return have
		}
	}
	return nil
}

// recover takes a directory out of what the bundle has. It could not be
// verified by keys that were added since.
func (f *filling) recover(ctx context.Context, dir string) bool {
	if f.Stored == nil || f.Access.Verifies() {
		return false
	}
	if !f.asked {
		f.asked = true
		// What cannot be read is fetched.
		f.stored, _ = f.Stored(ctx)
	}
	found := false
	for _, file := range f.stored {
		if strings.HasPrefix(file.Path, dir+"/") {
			f.files, found = append(f.files, file), true
		}
	}
	for _, pin := range f.Have {
		if found && (pin.Dir == dir || strings.HasPrefix(pin.Dir, dir+"/")) {
			f.pins = append(f.pins, pin)
		}
	}
	return found
}

// add puts a chart's files below dir.
func (f *filling) add(w chart.Want, dir string, c *chart.Chart) error {
	if err := f.put(dir, c.Files); err != nil {
		return err
	}
	f.pins = append(f.pins, fleet.BundleChart{Repo: w.Repo, Chart: w.Chart, Constraint: w.Version, Version: c.Version, Digest: c.Digest, Dir: dir})
	return nil
}

var errTogether = fault.Stall(chart.ReasonTooLarge, errors.New("all charts of the bundle together are larger than one may be: use fewer, or raise --chart-max-size of the hub"))

func (f *filling) put(dir string, files []source.File) error {
	for _, file := range files {
		if f.room -= int64(len(file.Data)); f.room < 0 {
			return errTogether
		}
		f.files = append(f.files, source.File{Path: path.Join(dir, file.Path), Data: file.Data})
	}
	return nil
}

// besideInTree returns what reads directories by paths relative to a chart of
// the repository.
func (f *filling) besideInTree(dir string) func(string) ([]source.File, error) {
	return func(relative string) ([]source.File, error) {
		if f.Tree == nil {
			return nil, fault.Stall(chart.ReasonInvalid, fmt.Errorf("file://%s: there is no repository to take it from", relative))
		}
		f.session.Within(f.room)
		return f.session.Collect(f.Tree, path.Join(f.Draft.Path, dir, relative))
	}
}

// use is a chart as the options of some cluster name it.
type use struct {
	repo, chart, version string
	noDependencies       bool
}

func (u use) remote() bool     { return chartref.IsRemote(u.repo, u.chart) }
func (u use) want() chart.Want { return chart.Want{Repo: u.repo, Chart: u.chart, Version: u.version} }

// dir is the chart's directory in the bundle.
func (u use) dir() string {
	if u.remote() {
		return chartref.Dir(u.repo, u.chart, u.version)
	}
	return path.Join(".", strings.TrimPrefix(u.chart, "/"))
}
