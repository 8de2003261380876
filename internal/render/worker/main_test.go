package worker

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/flotilla-sh/flotilla/internal/render"
	"github.com/flotilla-sh/flotilla/internal/source"
)

// spawn starts a child and returns the pipe to it.
func spawn(t *testing.T) (*child, chan error) {
	t.Helper()
	options := Options{Executable: os.Args[0]}
	options.setDefaults()
	c, err := start(&options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.command.Process.Kill() })
	ended := make(chan error, 1)
	return c, ended
}

func order1(template string) render.Request {
	return render.Request{Bundle: "web", Files: []source.File{
		{Path: "Chart.yaml", Data: []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n")},
		{Path: "templates/a.yaml", Data: []byte(template)},
	}}
}

func TestChildEndsWithItsParentInTheMiddleOfARender(t *testing.T) {
	c, ended := spawn(t)
	o, parts := pack(order1(`{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}`), true)
	if err := c.pipe.send(o, parts); err != nil {
		t.Fatal(err)
	}
	if err := c.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	go func() { ended <- c.command.Wait() }()
	select {
	case err := <-ended:
		if _, failed := err.(*exec.ExitError); failed {
			t.Errorf("it did not end in an orderly way: %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("it lives on without its parent")
	}
}

func TestChildAsksForFilesThatItLacks(t *testing.T) {
	c, _ := spawn(t)
	defer c.end()
	req := order1("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
	req.SourceDigest = render.SourceDigest(&req)
	c.sent[req.SourceDigest] = true // as if it had been sent and forgotten
	out := c.exchange(req)
	if out.broken != nil || out.err != nil || len(out.result.Objects) != 1 {
		t.Errorf("got %+v", out)
	}
	o, _ := pack(req, false)
	if err := c.pipe.send(o, nil); err != nil {
		t.Fatal(err)
	}
	var answer reply
	if _, err := c.pipe.receive(&answer); err != nil || answer.NeedFiles {
		t.Errorf("it asked again for what it has: %+v, %v", answer, err)
	}
}
