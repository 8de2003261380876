package manifest

import "bytes"

// chunk is the text of one YAML document.
type chunk struct {
	text []byte
	line int
}

// split cuts a YAML stream into its documents and drops those that hold
// nothing. Like Helm it also takes "---" directly followed by text for a
// separator, because templates that trim white space produce that.
func split(text []byte) []chunk {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	var chunks []chunk
	current := chunk{line: 1}
	start, line := 0, 1
	flush := func(end int) {
		current.text = text[start:end]
		if c, ok := current.trimmed(); ok {
			chunks = append(chunks, c)
		}
	}
	for pos := 0; pos < len(text); line++ {
		end := lineEnd(text, pos)
		if skip := separator(text[pos:end]); skip > 0 {
			flush(pos)
			start, current = pos+skip, chunk{line: line}
		}
		pos = end
	}
	flush(len(text))
	return chunks
}

// lineEnd returns the position after the line that begins at pos.
func lineEnd(text []byte, pos int) int {
	if i := bytes.IndexByte(text[pos:], '\n'); i >= 0 {
		return pos + i + 1
	}
	return len(text)
}

// separator returns how many bytes of a line are a document separator: 0 for
// an ordinary line.
func separator(line []byte) int {
	switch {
	case bytes.HasPrefix(line, []byte("---")) && !bytes.HasPrefix(line, []byte("----")):
		return len(line) - len(bytes.TrimLeft(line[3:], " \t"))
	case bytes.Equal(bytes.TrimRight(line, " \t\r\n"), []byte("...")):
		return len(bytes.TrimRight(line, "\r\n"))
	}
	return 0
}

// trimmed drops leading lines without content and tells whether anything is
// left. Directives such as %YAML stand before their document.
func (c chunk) trimmed() (chunk, bool) {
	for len(c.text) > 0 {
		end := lineEnd(c.text, 0)
		line := bytes.TrimSpace(c.text[:end])
		if len(line) > 0 && line[0] != '#' && line[0] != '%' {
			return c, true
		}
		c.text = c.text[end:]
		c.line++
	}
	return c, false
}
