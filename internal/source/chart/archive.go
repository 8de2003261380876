package chart

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"cmp"
	"compress/bzip2"
	"compress/gzip"
	"errors"
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
// nearest to its root.
func unpack(name string, archive *os.File, dir string, limits Limits) ([]source.File, error) {
	u := &unpacker{name: name, dir: dir, limits: limits, files: map[string][]byte{}, bad: map[string]error{}}
	if err := u.read(archive); err != nil {
		return nil, u.explain(err)
	}
	return u.chart()
}

// unpacker reads one archive.
type unpacker struct {
	name   string
	dir    string
	limits Limits

	entries int
	bytes   int64
	files   map[string][]byte
	// bad are entries that no chart may have.
	bad map[string]error
}

var (
	errTooMany = errors.New("too many entries")
	errTooMuch = errors.New("too many bytes")
)

func (u *unpacker) explain(err error) error {
	switch {
	case fault.KindOf(err) == fault.Stalled:
		return err
	case errors.Is(err, errTooMany):
		return stall(ReasonTooLarge, "%s holds more than %d files: make it smaller, or raise --chart-max-files of the hub", u.name, u.limits.Files)
	case errors.Is(err, errTooMuch):
		return stall(ReasonTooLarge, "%s unpacks to more than %s: make it smaller, or raise --chart-max-size of the hub", u.name, size(u.limits.Size))
	}
	return stall(ReasonArchive, "%s cannot be unpacked: %w", u.name, err)
}

// read finds out what kind of archive it is by its first bytes.
func (u *unpacker) read(archive *os.File) error {
	buffered := bufio.NewReader(archive)
	magic, _ := buffered.Peek(4)
	switch {
	case strings.HasPrefix(string(magic), "\x1f\x8b"):
		stream, err := gzip.NewReader(buffered)
		if err != nil {
			return err
		}
		return u.tar(stream)
	case strings.HasPrefix(string(magic), "BZh"):
		return u.tar(bzip2.NewReader(buffered))
	case strings.HasPrefix(string(magic), "PK"):
		return u.zip(archive)
	}
	return u.tar(buffered)
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

func (u *unpacker) tar(stream io.Reader) error {
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
		switch header.Typeflag {
		case tar.TypeReg:
			err = u.keep(header.Name, header.Size, reader)
		case tar.TypeDir, tar.TypeXGlobalHeader:
		default:
			err = u.refuse(header.Name, "is a link or no regular file")
		}
		if err != nil {
			return err
		}
	}
}

func (u *unpacker) zip(archive *os.File) error {
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
		if !f.Mode().IsRegular() {
			if err := u.refuse(f.Name, "is a link or no regular file"); err != nil {
				return err
			}
			continue
		}
		content, err := f.Open()
		if err != nil {
			return err
		}
		err = u.keep(f.Name, int64(min(f.UncompressedSize64, 1<<62)), content)
		_ = content.Close()
		if err != nil {
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
		return "", stall(ReasonArchive, "%s has an entry %q, which leads out of the archive", u.name, name)
	}
	return path.Clean(slashed), nil
}

// wanted tells whether an entry may be of the chart.
func (u *unpacker) wanted(name string) bool {
	_, below, _ := strings.Cut(name, "/")
	return u.dir == "" || within(name, u.dir) || within(below, u.dir)
}

func within(name, dir string) bool { return strings.HasPrefix(name, dir+"/") }

func (u *unpacker) keep(name string, announced int64, from io.Reader) error {
	name, err := u.local(name)
	if err != nil || !u.wanted(name) {
		return err
	}
	if announced > u.limits.Size-u.bytes {
		return errTooMuch
	}
	data, err := io.ReadAll(io.LimitReader(from, u.limits.Size-u.bytes+1))
	if err != nil {
		return err
	}
	u.bytes += int64(len(data))
	if u.bytes > u.limits.Size {
		return errTooMuch
	}
	u.files[name] = data
	return nil
}

func (u *unpacker) refuse(name, why string) error {
	name, err := u.local(name)
	if err == nil && u.wanted(name) {
		u.bad[name] = stall(ReasonArchive, "%s: the entry %q %s: replace it by the file itself", u.name, name, why)
	}
	return err
}

// chart picks the chart out of what was read.
func (u *unpacker) chart() ([]source.File, error) {
	root, found := u.root()
	if !found {
		where := "in its root or its only directory"
		if u.dir != "" {
			where = "in " + u.dir
		}
		return nil, stall(ReasonArchive, "%s holds no Chart.yaml %s: it is no chart", u.name, where)
	}
	for name, err := range u.bad {
		if root == "." || within(name, root) {
			return nil, err
		}
	}
	var files []source.File
	for name, data := range u.files {
		if root != "." {
			below, ok := strings.CutPrefix(name, root+"/")
			if !ok {
				continue
			}
			name = below
		}
		files = append(files, source.File{Path: name, Data: data})
	}
	slices.SortFunc(files, func(a, b source.File) int { return strings.Compare(a.Path, b.Path) })
	return files, nil
}

// root is the directory of the chart. An archive has its files in the root or,
// as Helm packs them, in one directory.
func (u *unpacker) root() (string, bool) {
	var candidates []string
	for name := range u.files {
		if path.Base(name) != "Chart.yaml" {
			continue
		}
		dir := path.Dir(name)
		_, below, _ := strings.Cut(dir, "/")
		switch {
		case u.dir == "" && strings.Contains(dir, "/"):
		case u.dir != "" && dir != u.dir && below != u.dir:
		default:
			candidates = append(candidates, dir)
		}
	}
	if len(candidates) == 0 {
		return "", false
	}
	slices.SortFunc(candidates, func(a, b string) int {
		return cmp.Or(cmp.Compare(depth(a), depth(b)), cmp.Compare(a, b))
	})
	return candidates[0], true
}

// depth counts the directories of a path; the root has none.
func depth(dir string) int {
	if dir == "." {
		return 0
	}
	return 1 + strings.Count(dir, "/")
}
