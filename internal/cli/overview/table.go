package overview

import (
	"io"
	"strings"
	"unicode/utf8"
)

// cell is a text in a table. A state is coloured.
type cell struct {
	text  string
	state bool
}

func plain(text string) cell { return cell{text: text} }

func state(text string) cell { return cell{text: text, state: true} }

// writeTable writes rows with aligned columns. The first row is the head.
func (p *printer) writeTable(rows [][]cell) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, c := range row {
			if i > 0 {
				line.WriteString(strings.Repeat(" ", widths[i-1]-utf8.RuneCountInString(row[i-1].text)+2))
			}
			line.WriteString(p.show(c))
		}
		p.line(line.String())
	}
}

// printer writes lines and keeps the first error.
type printer struct {
	w     io.Writer
	paint func(state, text string) string
	err   error
}

func (p *printer) show(c cell) string {
	if c.state && c.text != "-" {
		return p.paint(c.text, c.text)
	}
	return c.text
}

func (p *printer) line(text string) {
	if p.err == nil {
		_, p.err = io.WriteString(p.w, text+"\n")
	}
}
