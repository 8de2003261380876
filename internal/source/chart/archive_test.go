package chart

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/source/chart/charttest"
	"github.com/flotilla-sh/flotilla/internal/source/chartref"
)

func onDisk(t testing.TB, data []byte) *os.File {
	t.Helper()
	name := filepath.Join(t.TempDir(), "archive")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return file
}

// entries are a chart with more behind it.
func entries(more ...tar.Header) []byte {
	headers := []tar.Header{{Name: "app/Chart.yaml", Size: 10, Mode: 0o644}}
	bodies := []string{"name: app\n"}
	for _, h := range more {
		headers, bodies = append(headers, h), append(bodies, strings.Repeat("x", int(h.Size)))
	}
	return charttest.Tar(headers, bodies)
}

func zipped(files map[string]string) []byte {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for name, text := range files {
		f, err := w.Create(name)
		if err != nil {
			panic(err)
		}
		_, _ = f.Write([]byte(text))
	}
	_ = w.Close()
	return out.Bytes()
}

// bomb is a chart that unpacks to more than so many bytes.
func bomb(size int) []byte {
	return entries(tar.Header{Name: "app/zeros", Size: int64(size), Mode: 0o644})
}

// crowd is a chart of so many empty files.
func crowd(n int) []byte {
	headers := make([]tar.Header, n)
	for i := range headers {
		headers[i] = tar.Header{Name: fmt.Sprintf("app/%d", i), Mode: 0o644}
	}
	return entries(headers...)
}

// boundless announces more than it holds.
func boundless() []byte {
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	w := tar.NewWriter(packed)
	_ = w.WriteHeader(&tar.Header{Name: "app/Chart.yaml", Size: 2 << 30, Mode: 0o644})
	_ = packed.Close()
	return out.Bytes()
}

func TestUnpackRefuses(t *testing.T) {
	limits := Limits{Size: 1 << 20, Files: 1000}
	for name, tt := range map[string]struct {
		archive []byte
		dir     string
		reason  string
		say     string
	}{
		"a bomb":                  {bomb(8 << 20), "", ReasonTooLarge, "--chart-max-size"},
		"a bomb beside the chart": {bomb(8 << 20), "app/sub", ReasonTooLarge, "--chart-max-size"},
		"a hundred thousand":      {crowd(100_000), "", ReasonTooLarge, "--chart-max-files"},
		"two GiB announced":       {boundless(), "", ReasonTooLarge, "--chart-max-size"},
		"leads up":                {entries(tar.Header{Name: "app/../../etc/passwd"}), "", ReasonArchive, "leads out"},
		"absolute":                {entries(tar.Header{Name: "/etc/passwd"}), "", ReasonArchive, "leads out"},
		"backslashes":             {entries(tar.Header{Name: `app\..\..\x`}), "", ReasonArchive, "leads out"},
		"a drive":                 {entries(tar.Header{Name: `c:\x`}), "", ReasonArchive, "leads out"},
		"a link":                  {entries(tar.Header{Name: "app/link", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}), "", ReasonArchive, "is a link"},
		"a hard link":             {entries(tar.Header{Name: "app/link", Typeflag: tar.TypeLink, Linkname: "app/Chart.yaml"}), "", ReasonArchive, "is a link"},
		"a device":                {entries(tar.Header{Name: "app/null", Typeflag: tar.TypeChar}), "", ReasonArchive, "is a link or no regular file"},
		"nothing":                 {nil, "", ReasonArchive, "no Chart.yaml"},
		"text":                    {[]byte("<html>"), "", ReasonArchive, "cannot be unpacked"},
		"half an archive":         {entries()[:60], "", ReasonArchive, "cannot be unpacked"},
		"half a zip":              {zipped(charttest.Chart("app", "1"))[:90], "", ReasonArchive, "cannot be unpacked"},
		"zip that leads up":       {zipped(map[string]string{"../Chart.yaml": "x"}), "", ReasonArchive, "leads out"},
		"zip bomb":                {zipped(map[string]string{"Chart.yaml": strings.Repeat("0", 8<<20)}), "", ReasonTooLarge, "--chart-max-size"},
		"no chart there":          {entries(), "charts/app", ReasonArchive, "no Chart.yaml in charts/app"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := unpack("the archive", onDisk(t, tt.archive), tt.dir, limits)
			kind := fault.Waiting // the server may send another one
			if tt.reason == ReasonTooLarge {
				kind = fault.Stalled
			}
			if fault.ReasonOf(err, "") != tt.reason || fault.KindOf(err) != kind || !strings.Contains(err.Error(), tt.say) {
				t.Errorf("got %v, want %s with %q", err, tt.reason, tt.say)
			}
		})
	}
}

func TestUnpack(t *testing.T) {
	limits := Limits{Size: 1 << 20, Files: 1000}
	plain := charttest.Chart("app", "1.0.0")
	gz, err := gzip.NewReader(bytes.NewReader(charttest.Pack("app", plain)))
	if err != nil {
		t.Fatal(err)
	}
	var unzipped bytes.Buffer
	if _, err := unzipped.ReadFrom(gz); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		archive []byte
		dir     string
		files   int
	}{
		"as Helm packs":     {charttest.Pack("app", plain), "", 3},
		"tar":               {unzipped.Bytes(), "", 3},
		"zip":               {zipped(plain), "", 3},
		"with a sub-chart":  {charttest.Pack("app", charttest.Chart("app", "1.0.0", "charts/sub/Chart.yaml", "name: sub")), "", 4},
		"the sub-chart":     {charttest.Pack("app", charttest.Chart("app", "1.0.0", "charts/sub/Chart.yaml", "name: sub")), "charts/sub", 1},
		"a link beside it":  {entries(tar.Header{Name: "other/link", Typeflag: tar.TypeSymlink, Linkname: "x"}), "app", 1},
		"names with a dot":  {charttest.Pack("./app", plain), "", 3},
		"a directory entry": {entries(tar.Header{Name: "app/templates/", Typeflag: tar.TypeDir}), "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			files, err := unpack("the archive", onDisk(t, tt.archive), tt.dir, limits)
			if err != nil || len(files) != tt.files || !hasChartFile(files) {
				t.Errorf("%d files, %v", len(files), err)
			}
		})
	}
}

// A page that says that a server is being repaired is no last word.
func TestAPageInPlaceOfAnIndexIsAskedForAgain(t *testing.T) {
	for _, page := range []string{"<html>back soon</html>", "{", "entries: []", ""} {
		_, err := choose(onDisk(t, []byte(page)), chartref.Ref{URL: "https://charts.example", Chart: "app"})
		if fault.KindOf(err) != fault.Waiting {
			t.Errorf("%q: %v", page, err)
		}
	}
}

func TestUnpackHoldsTheChartAlone(t *testing.T) {
	const chart, beside = 6 << 20, 40 << 20
	archive := onDisk(t, entries(
		tar.Header{Name: "app/big", Size: chart, Mode: 0o644}, tar.Header{Name: "other/bigger", Size: beside, Mode: 0o644}))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	files, err := unpack("the archive", archive, "", DefaultLimits())
	runtime.ReadMemStats(&after)
	const slack = 2 << 20
	if used := after.TotalAlloc - before.TotalAlloc; err != nil || len(files) != 2 || used > chart+slack {
		t.Errorf("%d files, %v, %d bytes", len(files), err, used)
	}
}

func FuzzUnpack(f *testing.F) {
	for _, seed := range [][]byte{
		entries(), crowd(20), bomb(100), boundless(), zipped(charttest.Chart("app", "1.0.0")), []byte("BZh9"),
		entries(tar.Header{Name: `app/..\x`}), entries(tar.Header{Name: "app/l", Typeflag: tar.TypeSymlink, Linkname: "/"}),
	} {
		f.Add(seed, "")
		f.Add(seed, "app")
	}
	limits := Limits{Size: 1 << 16, Files: 50}
	f.Fuzz(func(t *testing.T, data []byte, dir string) {
		files, err := unpack("the archive", onDisk(t, data), dir, limits)
		if err != nil {
			if fault.KindOf(err) == fault.Transient {
				t.Errorf("%v is not the author's to mend", err)
			}
			return
		}
		total := 0
		for _, file := range files {
			total += len(file.Data)
			if !filepath.IsLocal(file.Path) || strings.Contains(file.Path, `\`) {
				t.Errorf("%q leads out", file.Path)
			}
		}
		if int64(total) > limits.Size || len(files) > limits.Files {
			t.Errorf("%d files of %d bytes", len(files), total)
		}
	})
}

const helmIndex = `apiVersion: v1
entries:
  alpine:
  # a comment
  - apiVersion: v2
    description: |
      text
        app:
    urls: [alpine-1.tgz]
    version: 1.0.0

  "app":
  - description: 'app: x'
    urls:
    - app-2.tgz
    version: 2.0.0
  - digest: abc
    urls:
    - app-1.tgz
    version: 1.0.0
  zebra:
  - version: 9.0.0
generated: "2026-01-01T00:00:00Z"
`

func TestIndex(t *testing.T) {
	for name, text := range map[string]string{
		"as Helm writes it": helmIndex,
		"indented lists":    "entries:\n    zebra:\n      - version: 9.0.0\n    app:\n      - version: 2.0.0\n        urls:\n          - app-2.tgz\n      - {version: 1.0.0, urls: [app-1.tgz]}\n",
		"other order":       "generated: x\n" + strings.TrimSuffix(helmIndex, "generated: \"2026-01-01T00:00:00Z\"\n"),
		"JSON":              `{"entries":{"zebra":[],"app":[{"version":"2.0.0","urls":["app-2.tgz"]},{"version":"1.0.0","urls":["app-1.tgz"]}]}}`,
		"in a flow":         `entries: {app: [{version: 2.0.0, urls: [app-2.tgz]}, {version: 1.0.0, urls: [app-1.tgz]}]}`,
		"DOS":               strings.ReplaceAll(helmIndex, "\n", "\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := entriesOf(strings.NewReader(text), "app")
			if err != nil || len(got) != 2 || got[0].Version != "2.0.0" || got[1].Version != "1.0.0" || len(got[0].URLs) != 1 || got[0].URLs[0] != "app-2.tgz" {
				t.Errorf("got %+v, %v", got, err)
			}
			if got, names, err := entriesOf(strings.NewReader(text), "none"); err != nil || len(got) != 0 || len(names) == 0 {
				t.Errorf("got %+v %v, %v", got, names, err)
			}
		})
	}
	long := helmIndex + strings.Repeat("# "+strings.Repeat("x", 1<<20)+"\n", 12)
	if got, _, err := entriesOf(strings.NewReader(long), "app"); err != nil || len(got) != 2 {
		t.Errorf("a large index: %+v, %v", got, err)
	}
	large := strings.Replace(helmIndex, "'app: x'", strings.Repeat("x", entryLimit+1), 1)
	if _, _, err := entriesOf(strings.NewReader(large), "app"); err == nil {
		t.Error("a large entry is parsed")
	}
	if _, _, err := entriesOf(strings.NewReader("x: "+strings.Repeat("x", entryLimit+1)), "app"); err == nil {
		t.Error("a large text is parsed")
	}
}

func FuzzIndex(f *testing.F) {
	f.Add(helmIndex, "app")
	f.Add(`{"entries":{}}`, "app")
	f.Add("entries:\n - a", "")
	f.Fuzz(func(_ *testing.T, text, chart string) {
		_, _, _ = entriesOf(strings.NewReader(text), chart)
	})
}

func TestStoreIsBounded(t *testing.T) {
	s, err := newStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s.room = 250
	var sums []string
	for i := range 5 {
		file, err := s.temporary()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteString(strings.Repeat(fmt.Sprint(i), 100)); err != nil {
			t.Fatal(err)
		}
		sum, err := digestOf(file)
		if err != nil {
			t.Fatal(err)
		}
		s.put("id", sum, file)
		discard(file)
		sums = append(sums, sum)
		if kept := s.open("id", sums[0]); kept != nil { // it is in use
			_ = kept.Close()
		} else {
			t.Fatal("what is used was deleted")
		}
	}
	left, _ := filepath.Glob(filepath.Join(s.dir, "*", "*"))
	if len(left) != 2 {
		t.Errorf("%d archives are left, want 2", len(left))
	}
	if err := os.WriteFile(s.path("id", sums[0]), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s.open("id", sums[0]) != nil || s.open("id", "../x") != nil {
		t.Error("a damaged or foreign file is taken")
	}
}
