package gitserver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// Commit is a change to make in a repository without a checkout.
type Commit struct {
	// Branch is where the commit goes; main where empty.
	Branch string
	// Message is the commit message.
	Message string
	// Files are written, by path.
	Files map[string]string
	// Delete are files or directories that are removed first.
	Delete []string
}

// Commit adds a commit to a branch and returns its hash. It creates the
// repository and the branch where they do not exist.
func (s *Server) Commit(ctx context.Context, name string, c Commit) (string, error) {
	if err := s.Create(ctx, name); err != nil {
		return "", err
	}
	if c.Branch == "" {
		c.Branch = "main"
	}
	ref := "refs/heads/" + c.Branch
	_, err := s.Git(ctx, name, "rev-parse", "--verify", "--quiet", ref)
	stream := c.stream(ref, err == nil)
	if _, err := s.run(ctx, stream, "-C", s.Path(name), "fast-import", "--quiet", "--date-format=now"); err != nil {
		return "", err
	}
	return s.Git(ctx, name, "rev-parse", ref)
}

// Git runs a git command in a repository and returns its output, trimmed.
func (s *Server) Git(ctx context.Context, name string, args ...string) (string, error) {
	return s.run(ctx, nil, append([]string{"-C", s.Path(name)}, args...)...)
}

// stream is the commit in the language of git fast-import.
func (c Commit) stream(ref string, hasParent bool) io.Reader {
	var b bytes.Buffer
	fmt.Fprintf(&b, "commit %s\ncommitter Flotilla Lab <lab@flotilla.invalid> now\n", ref)
	writeData(&b, c.Message)
	if hasParent {
		fmt.Fprintf(&b, "from %s^0\n", ref)
	}
	for _, path := range c.Delete {
		fmt.Fprintf(&b, "D %s\n", path)
	}
	for _, path := range slices.Sorted(maps.Keys(c.Files)) {
		fmt.Fprintf(&b, "M 100644 inline %s\n", path)
		writeData(&b, c.Files[path])
	}
	return &b
}

func writeData(b *bytes.Buffer, data string) {
	fmt.Fprintf(b, "data %d\n%s\n", len(data), data)
}

func (s *Server) run(ctx context.Context, in io.Reader, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, s.git, args...)
	cmd.Stdin = in
	cmd.Env = append(cmd.Environ(), isolated()...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(out)), nil
}

// spool keeps a stream in an unlinked temporary file.
func spool(in io.Reader) (*os.File, int64, error) {
	file, err := os.CreateTemp("", "flotilla-git-*")
	if err != nil {
		return nil, 0, err
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, 0, err
	}
	size, err := io.Copy(file, in)
	if err != nil {
		return nil, 0, err
	}
	_, err = file.Seek(0, io.SeekStart)
	return file, size, err
}
