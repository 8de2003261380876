package chart

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	// indexLimit bounds the index of a repository; it is read as a stream. The
	// largest in use have some 30 MB.
	indexLimit = 128 << 20
	// indexesKept is how many bytes of indexes a session keeps while it asks for
	// another.
	indexesKept = 32 << 20
	// entryLimit bounds what is said of one chart, and an index that must be
	// parsed as a whole.
	entryLimit = 8 << 20
	// maxNames bounds the names that are kept to guess what was meant.
	maxNames = 5000
)

// entry is one version of a chart in an index.
type entry struct {
	Version string   `json:"version"`
	URLs    []string `json:"urls"`
	Digest  string   `json:"digest"`
}

var (
	errIndexEntry = errors.New("what its index says of the chart is too large")
	errIndexForm  = errors.New("its index is not in the form that Helm writes")
)

// entriesOf reads what an index says of one chart, and which others there are.
// To parse a large index as a whole would take a gigabyte, so the lines of the
// chart are cut out first; an index that is not laid out in lines must be small.
func entriesOf(index io.ReadSeeker, chart string) ([]entry, []string, error) {
	c := &cutter{chart: chart, indent: -1}
	if err := c.cut(index); err != nil {
		return nil, nil, err
	}
	if c.laidOut {
		found, err := parseEntries(c.block.Bytes())
		return found[chart], c.names, err
	}
	if _, err := index.Seek(0, io.SeekStart); err != nil {
		return nil, nil, err
	}
	whole, err := io.ReadAll(io.LimitReader(index, entryLimit+1))
	if err != nil {
		return nil, nil, err
	}
	if len(whole) > entryLimit {
		return nil, nil, errIndexForm
	}
	found, err := parseEntries(whole)
	names := make([]string, 0, len(found))
	for name := range found {
		names = append(names, name)
	}
	return found[chart], names, err
}

func parseEntries(text []byte) (map[string][]entry, error) {
	var index struct {
		Entries map[string][]entry `json:"entries"`
	}
	if yaml.Unmarshal(text, &index) != nil {
		return nil, errIndexForm
	}
	return index.Entries, nil
}

// cutter finds the lines of one chart. What stands at the indentation of the
// first name below "entries:" is either a name or, with a dash, an item of the
// list below it; all else is deeper.
type cutter struct {
	chart   string
	laidOut bool
	inside  bool // below "entries:"
	wanted  bool // below the chart's name
	indent  int
	names   []string
	block   bytes.Buffer
}

func (c *cutter) cut(index io.Reader) error {
	c.block.WriteString("entries:\n")
	lines := bufio.NewReaderSize(index, 64<<10)
	begins := true
	for {
		part, err := lines.ReadSlice('\n')
		if begins && len(part) > 0 {
			c.line(string(part))
		}
		if c.wanted {
			c.block.Write(part)
			if c.block.Len() > entryLimit {
				return errIndexEntry
			}
		}
		begins = !errors.Is(err, bufio.ErrBufferFull)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && begins {
			return err
		}
	}
}

// line looks at the beginning of a line.
func (c *cutter) line(text string) {
	content := strings.TrimLeft(text, " ")
	indent := len(text) - len(content)
	content = strings.TrimSpace(content)
	if content == "" || strings.HasPrefix(content, "#") {
		return
	}
	if indent == 0 {
		c.inside, c.wanted = content == "entries:", false
		c.laidOut = c.laidOut || c.inside
		return
	}
	if !c.inside {
		return
	}
	if c.indent < 0 {
		c.indent = indent
	}
	if indent > c.indent || content == "-" || strings.HasPrefix(content, "- ") {
		return
	}
	name, _, _ := strings.Cut(content, ":")
	name = strings.Trim(name, `"'`)
	c.wanted = name == c.chart
	if len(c.names) < maxNames {
		c.names = append(c.names, name)
	}
}
