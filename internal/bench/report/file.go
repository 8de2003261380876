package report

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/flotilla-sh/flotilla/internal/bench/meter"
)

// File is all that one run of the program has measured.
type File struct {
	// Commit is the source that was measured, Machine where.
	Commit  string    `json:"commit"`
	Date    time.Time `json:"date"`
	Machine Machine   `json:"machine"`
	Rows    []Row     `json:"rows"`
}

// Row is one row, measured several times.
type Row struct {
	Name    string    `json:"name"`
	Title   string    `json:"title"`
	N       int       `json:"n"`
	Figures []Summary `json:"figures"`
	// Phases tell the requests of the last repeat.
	Phases []Phase `json:"phases,omitempty"`
	// Error is why the row could not be measured.
	Error string `json:"error,omitempty"`
}

// Phase is a part of a row and its requests.
type Phase struct {
	Name     string      `json:"name"`
	Requests []meter.Row `json:"requests"`
	// Disagree is by how many requests the metrics of the API server differ.
	Disagree int `json:"disagree"`
}

// Write stores the file.
func (f File) Write(path string) error {
	data, err := json.MarshalIndent(f, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644) //nolint:gosec // for everyone to read
}

// Read reads a file that Write wrote.
func Read(path string) (File, error) {
	var f File
	data, err := os.ReadFile(path)
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return f, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}
