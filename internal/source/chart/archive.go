package chart

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"cmp"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/source"
)

// Limits bound what one chart may cost.
type Limits struct {
	// Size is how many bytes an archive may have, packed and unpacked.
	Size int64
	// Files is how many entries it may have.
	Files int
}

// DefaultLimits are far beyond any chart in use.
func DefaultLimits() Limits { return Limits{Size: 64 << 20, Files: 10_000} }

// headerSize is what an entry costs beside its content in a tar file, rounded
// up.
const headerSize = 4 << 10

// unpack returns the files of the chart in an archive, relative to the chart's
// directory and sorted: the directory dir of the archive, or else the one
// nearest to its root. It goes over the archive twice, to find the chart and to
// read it, so that nothing is held in memory but its files.
func unpack(name string, archive *os.File, dir string, limits Limits) ([]source.File, error) {
	u := &unpacker{name: name, dir: dir, limits: limits, files: map[string][]byte{}, bad: map[string]error{}}
	if err := u.read(archive, u.survey); err != nil {
		return nil, u.explain(err)
	}
	if err := u.find(); err != nil {
		return nil, err
	}
	u.entries = 0
	if _, err := archive.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("cannot read the cache of charts: %w", err)
	}
	if err := u.read(archive, u.keep); err != nil {
		return nil, u.explain(err)
	}
	return u.chart(), nil
}

// unpacker reads one archive.
type unpacker struct {
	name   string
	dir    string
	limits Limits

	entries int
	bytes   int64
	// charts are the directories with a Chart.yaml, and root that of the chart.
	charts []string
	root   string
	files  map[string][]byte
	// bad are entries that no chart may have.
	bad map[string]error
}

// item is an entry of an archive.
type item struct {
	name    string
	regular bool
	size    int64
	open    func() (io.ReadCloser, error)
}

var (
	errTooMany = errors.New("too many entries")
	errTooMuch = errors.New("too many bytes")
)

func (u *unpacker) explain(err error) error {
	switch {
	case fault.ReasonOf(err, "") != "":
		return err
	case errors.Is(err, errTooMany):
		return stall(ReasonTooLarge, "%s holds more than %d files: make it smaller, or raise --chart-max-files of the hub", u.name, u.limits.Files)
	case errors.Is(err, errTooMuch):
		return stall(ReasonTooLarge, "%s unpacks to more than %s: make it smaller, or raise --chart-max-size of the hub", u.name, size(u.limits.Size))
	}
	return wait(ReasonArchive, "%s cannot be unpacked: %w", u.name, err)
}

// read visits the entries of an archive. It finds out what kind it is by its
// first bytes.
func (u *unpacker) read(archive *os.File, visit func(item) error) error {
	buffered := bufio.NewReader(archive)
	magic, _ := buffered.Peek(4)
	switch {
	case strings.HasPrefix(string(magic), "\x1f\x8b"):
		stream, err := gzip.NewReader(buffered)
		if err != nil {
			return err
		}
		return u.tar(stream, visit)
	case strings.HasPrefix(string(magic), "BZh"):
		return u.tar(bzip2.NewReader(buffered), visit)
	case strings.HasPrefix(string(magic), "PK"):
		return u.zip(archive, visit)
	}
	return u.tar(buffered, visit)
}

// capped fails where a stream goes on beyond a limit, so that what is skipped
// costs no more than what is kept.
type capped struct {
	from io.Reader
	left int64
}

// Read reads.
func (c *capped) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errTooMuch
	}
	n, err := c.from.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}

func (u *unpacker) tar(stream io.Reader, visit func(item) error) error {
	reader := tar.NewReader(&capped{stream, u.limits.Size + int64(u.limits.Files)*headerSize})
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := u.count(); err != nil {
			return err
		}
		if header.Typeflag == tar.TypeDir || header.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		open := func() (io.ReadCloser, error) { return io.NopCloser(reader), nil }
		if err := visit(item{header.Name, header.Typeflag == tar.TypeReg, header.Size, open}); err != nil {
			return err
		}
	}
}

func (u *unpacker) zip(archive *os.File, visit func(item) error) error {
	info, err := archive.Stat()
	if err != nil {
		return err
	}
	reader, err := zip.NewReader(archive, info.Size())
	if err != nil {
		return err
	}
	for _, f := range reader.File {
		if err := u.count(); err != nil {
			return err
		}
		if f.Mode().IsDir() {
			continue
		}
		if err := visit(item{f.Name, f.Mode().IsRegular(), int64(min(f.UncompressedSize64, 1<<62)), f.Open}); err != nil {
			return err
		}
	}
	return nil
}

func (u *unpacker) count() error {
	if u.entries++; u.entries > u.limits.Files {
		return errTooMany
	}
	return nil
}

// local returns the name of an entry as a path that stays inside.
func (u *unpacker) local(name string) (string, error) {
	slashed := strings.TrimPrefix(strings.ReplaceAll(name, `\`, "/"), "./")
	if !fs.ValidPath(path.Clean(slashed)) || strings.Contains(slashed, ":/") || slices.Contains(strings.Split(slashed, "/"), "..") {
		return "", wait(ReasonArchive, "%s has an entry %q, which leads out of the archive", u.name, name)
	}
	return path.Clean(slashed), nil
}

// wanted tells whether an entry may be of the chart.
func (u *unpacker) wanted(name string) bool {
	_, below, _ := strings.Cut(name, "/")
	return u.dir == "" || within(name, u.dir) || within(below, u.dir)
}

func within(name, dir string) bool { return strings.HasPrefix(name, dir+"/") }

// survey takes note of an entry without reading it.
func (u *unpacker) survey(e item) error {
	name, err := u.local(e.name)
	switch {
	case err != nil || !u.wanted(name):
		return err
	case !e.regular:
		u.bad[name] = wait(ReasonArchive, "%s: the entry %q is a link or no regular file: replace it by the file itself", u.name, name)
	case e.size > u.limits.Size:
		return errTooMuch
	case path.Base(name) == "Chart.yaml":
		u.charts = append(u.charts, path.Dir(name))
	}
	return nil
}

// find picks the chart out of what was seen.
func (u *unpacker) find() error {
	if !u.choose() {
		where := "in its root or its only directory"
		if u.dir != "" {
			where = "in " + u.dir
		}
		return wait(ReasonArchive, "%s holds no Chart.yaml %s: it is no chart", u.name, where)
	}
	for name, err := range u.bad {
		if _, ok := u.below(name); ok {
			return err
		}
	}
	return nil
}

// choose settles the directory of the chart. An archive has its files in the
// root or, as Helm packs them, in one directory.
func (u *unpacker) choose() bool {
	var candidates []string
	for _, dir := range u.charts {
		_, below, _ := strings.Cut(dir, "/")
		switch {
		case u.dir == "" && strings.Contains(dir, "/"):
		case u.dir != "" && dir != u.dir && below != u.dir:
		default:
			candidates = append(candidates, dir)
		}
	}
	if len(candidates) == 0 {
		return false
	}
	u.root = slices.MinFunc(candidates, func(a, b string) int {
		return cmp.Or(cmp.Compare(depth(a), depth(b)), cmp.Compare(a, b))
	})
	return true
}

// below returns a path relative to the chart's directory, where it is in there.
func (u *unpacker) below(name string) (string, bool) {
	if u.root == "." {
		return name, true
	}
	return strings.CutPrefix(name, u.root+"/")
}

// keep reads an entry of the chart.
func (u *unpacker) keep(e item) error {
	name, err := u.local(e.name)
	if err != nil {
		return err
	}
	name, ok := u.below(name)
	if !ok || !e.regular {
		return nil
	}
	if u.bytes += e.size; u.bytes > u.limits.Size {
		return errTooMuch
	}
	from, err := e.open()
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	data := make([]byte, e.size)
	if _, err := io.ReadFull(from, data); err != nil {
		return err
	}
	// A checksum is looked at where the entry ends.
	if n, err := io.Copy(io.Discard, io.LimitReader(from, 1)); n > 0 || err != nil {
		return cmp.Or(err, errTooMuch)
	}
	u.files[name] = data
	return nil
}

// chart returns what was read.
func (u *unpacker) chart() []source.File {
	files := make([]source.File, 0, len(u.files))
	for name, data := range u.files {
		files = append(files, source.File{Path: name, Data: data})
	}
	slices.SortFunc(files, func(a, b source.File) int { return strings.Compare(a.Path, b.Path) })
	return files
}

// depth counts the directories of a path; the root has none.
func depth(dir string) int {
	if dir == "." {
		return 0
	}
	return 1 + strings.Count(dir, "/")
}
