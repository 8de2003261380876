package pack

import (
	"context"
	"errors"
	"testing"
	"testing/fstest"

	"github.com/flotilla-sh/flotilla/internal/bundle"
	"github.com/flotilla-sh/flotilla/internal/source"
	"github.com/flotilla-sh/flotilla/internal/source/git"
)

// fixed is a source with the same files for everybody.
type fixed struct{ files fstest.MapFS }

func (f fixed) Resolve(context.Context, git.Remote) (string, error) { return "c", nil }

func (f fixed) Read(_ context.Context, _ git.Remote, commit string, read func(source.Tree)) error {
	read(source.Tree{Commit: commit, FS: f.files})
	return nil
}

// repository has one bundle with so many bytes.
func repository(bytes int) fixed {
	return fixed{fstest.MapFS{"app/fleet.yaml": {}, "app/cm.yaml": {Data: make([]byte, bytes)}}}
}

func TestLargeGitRepoHasItsTurnAlone(t *testing.T) {
	alone := make(turn, 1)
	read := func(ctx context.Context, bytes int, most int64) (found, error) {
		c := &Controller{Git: repository(bytes), alone: alone}
		return c.read(ctx, git.Remote{}, "c", bundle.Input{RepoName: "repo", Paths: []string{"app"}, MaxBytes: most})
	}
	must := func(bytes int, most int64) found {
		t.Helper()
		got, err := read(t.Context(), bytes, most)
		if err != nil || got.err != nil || len(got.drafts) != 1 {
			t.Fatalf("%d bytes: %+v, %v", bytes, got, err)
		}
		return got
	}
	const large = smallBundles + 1
	first := must(large, 0)
	if first.drafts[0].Err != nil || len(first.drafts[0].Files) != 1 {
		t.Errorf("a large one is not read: %v", first.drafts[0].Err)
	}
	if beside := must(smallBundles, 0); beside.drafts[0].Err != nil {
		t.Errorf("a small one waits for a large one: %v", beside.drafts[0].Err)
	}
	if beside := must(100, 10); beside.drafts[0].Err == nil {
		t.Error("a bound below that of small ones is not kept")
	}
	given, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := read(given, large, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("a second large one does not wait: %v", err)
	}
	first.done()
	if refused := must(large, large-1); refused.drafts[0].Err == nil {
		t.Error("the bound of the hub is not kept")
	} else {
		refused.done()
	}
	must(large, large).done()
}
