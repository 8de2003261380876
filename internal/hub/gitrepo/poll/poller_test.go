package poll

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-sh/flotilla/internal/source/git"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// server is a Git server that counts who asks, and a list of who was told.
type server struct {
	mu     sync.Mutex
	commit string
	err    error
	asked  map[string]int // by user
	at     []time.Duration
	told   []string
	start  time.Time
	poller *poller
}

func newServer(t *testing.T) (*server, context.Context) {
	s := &server{commit: "one", asked: map[string]int{}, start: time.Now()}
	resolve := func(_ context.Context, remote git.Remote) (string, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked[remote.Credentials.Username]++
		s.at = append(s.at, time.Since(s.start))
		return s.commit, s.err
	}
	s.poller = newPoller(resolve, func(repo types.NamespacedName) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.told = append(s.told, repo.Name)
	})
	return s, t.Context()
}

func (s *server) answers(commit string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commit, s.err = commit, err
}

// news returns who was told since the last call, sorted.
func (s *server) news() []string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	told := s.told
	s.told = nil
	slices.Sort(told)
	return told
}

func (s *server) times() int {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.at)
}

// wait lets d and what jitter may add pass.
func wait(d time.Duration) {
	time.Sleep(d + d/10 + time.Millisecond)
	synctest.Wait()
}

func repo(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "fleet-default", Name: name}
}

func every(d time.Duration) Wish { return Wish{Interval: d} }

func as(user string) git.Remote {
	return git.Remote{URL: "https://git.example/app", Branch: "main", Credentials: git.Credentials{Username: user, Password: "p"}}
}

func TestOnePollForEqualIdentities(t *testing.T) {
	branch, ca := as("a"), as("a")
	branch.Branch = "release"
	ca.TLS.CABundle = []byte("pem")
	for name, tt := range map[string]struct {
		remotes []git.Remote
		want    int
	}{
		"equal":             {[]git.Remote{as("a"), as("a"), as("a")}, 1},
		"other credentials": {[]git.Remote{as("a"), as("b")}, 2},
		"anonymous":         {[]git.Remote{as("a"), {URL: as("a").URL, Branch: "main"}}, 2},
		"other branch":      {[]git.Remote{as("a"), branch}, 2},
		"other authority":   {[]git.Remote{as("a"), ca}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, ctx := newServer(t)
				for i, remote := range tt.remotes {
					s.poller.Watch(ctx, repo(string(rune('a'+i))), remote, every(time.Minute))
				}
				if got := s.times(); got != tt.want {
					t.Errorf("%d questions for %d GitRepos, want %d", got, len(tt.remotes), tt.want)
				}
				if got := s.news(); len(got) != len(tt.remotes) {
					t.Errorf("told %v, want all %d", got, len(tt.remotes))
				}
			})
		})
	}
}

func TestNotifiesOfNewsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := newServer(t)
		s.poller.Watch(ctx, repo("a"), as("x"), every(time.Minute))
		s.poller.Watch(ctx, repo("b"), as("x"), every(time.Minute))
		both := []string{"a", "b"}
		down := errors.New("connection refused")
		for _, step := range []struct {
			name   string
			commit string
			err    error
			told   []string
			want   result
		}{
			{"first answer", "one", nil, both, result{Commit: "one"}},
			{"nothing new", "one", nil, nil, result{Commit: "one"}},
			{"a new commit", "two", nil, both, result{Commit: "two"}},
			{"the server goes away", "", down, both, result{Commit: "two", Err: down}},
			{"and stays away", "", errors.New("connection refused"), nil, result{Commit: "two", Err: down}},
			{"and comes back as it was", "two", nil, both, result{Commit: "two"}},
		} {
			s.answers(step.commit, step.err)
			if step.name != "first answer" {
				wait(25 * time.Minute)
			}
			if got := s.news(); !slices.Equal(got, step.told) {
				t.Errorf("%s: told %v, want %v", step.name, got, step.told)
			}
			got, ok := s.poller.Watch(ctx, repo("a"), as("x"), every(time.Minute))
			if !ok || got.Commit != step.want.Commit || text(got.Err) != text(step.want.Err) {
				t.Errorf("%s: result %v %v, want %v", step.name, got, ok, step.want)
			}
		}
	})
}

func TestDropEndsThePoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := newServer(t)
		s.poller.Watch(ctx, repo("a"), as("x"), every(time.Minute))
		s.poller.Watch(ctx, repo("b"), as("x"), every(time.Minute))
		s.news()
		s.poller.Drop(repo("a"))
		s.answers("two", nil)
		wait(time.Minute)
		if got := s.news(); !slices.Equal(got, []string{"b"}) {
			t.Errorf("told %v, want b, which still takes part", got)
		}
		s.poller.Drop(repo("b"))
		s.poller.Drop(repo("b"))
		asked := s.times()
		wait(time.Hour)
		if got := s.times(); got != asked {
			t.Errorf("asked %d times more although nobody takes part", got-asked)
		}
	})
}

func TestOtherCredentialsBeginAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := newServer(t)
		s.poller.Watch(ctx, repo("a"), as("old"), every(time.Minute))
		synctest.Wait()
		if got, ok := s.poller.Watch(ctx, repo("a"), as("new"), every(time.Minute)); ok {
			t.Errorf("the new credentials got the answer of the old ones: %v", got)
		}
		wait(time.Hour)
		if s.asked["old"] != 1 || s.asked["new"] < 50 {
			t.Errorf("asked %v, want the old credentials once and the new ones from then on", s.asked)
		}
	})
}

func TestShorterIntervalActsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := newServer(t)
		s.poller.Watch(ctx, repo("a"), as("x"), every(never))
		wait(100 * time.Hour)
		if got := s.times(); got != 1 {
			t.Fatalf("asked %d times with polling off, want once", got)
		}
		s.poller.Watch(ctx, repo("a"), as("x"), every(time.Minute))
		if got := s.times(); got != 2 {
			t.Errorf("asked %d times after polling was turned on, want 2", got)
		}
		wait(time.Minute)
		if got := s.times(); got != 3 {
			t.Errorf("asked %d times a minute later, want 3", got)
		}
	})
}

func TestBackOffIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := newServer(t)
		s.answers("", errors.New("down"))
		s.poller.Watch(ctx, repo("a"), as("x"), every(time.Minute))
		wait(10 * time.Hour)
		s.mu.Lock()
		var gaps []time.Duration
		for i := 1; i < len(s.at); i++ {
			gaps = append(gaps, s.at[i]-s.at[i-1])
		}
		s.mu.Unlock()
		for i, want := range []time.Duration{15, 30, 60, 120, 240, 300, 300} {
			if want *= time.Second; gaps[i] < want || gaps[i] > want+want/10+1 {
				t.Errorf("pause %d is %s, want %s and at most a tenth more", i+1, gaps[i], want)
			}
		}
		s.answers("one", nil)
		wait(lastRetry)
		before := s.times()
		wait(10 * time.Minute)
		if got := s.times() - before; got < 9 {
			t.Errorf("asked %d times in ten minutes after the server came back, want every minute again", got)
		}
	})
}

func TestDelay(t *testing.T) {
	for name, tt := range map[string]struct {
		interval time.Duration
		failures int
		want     time.Duration
	}{
		"fine":                       {time.Minute, 0, time.Minute},
		"one failure":                {time.Minute, 1, firstRetry},
		"two failures":               {time.Minute, 2, 2 * firstRetry},
		"many failures":              {time.Minute, 1000, lastRetry},
		"one, every second":          {time.Second, 1, time.Second},
		"one, every hour":            {time.Hour, 1, firstRetry},
		"many, every hour":           {time.Hour, 1000, time.Hour},
		"many, every day":            {24 * time.Hour, 1000, 24 * time.Hour},
		"polling off":                {never, 0, never},
		"polling off, but no answer": {never, 1, firstRetry},
		"polling off, and down":      {never, 1000, lastRetry},
		"nobody left":                {0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			for range 200 {
				if got := delay(tt.interval, tt.failures); got < tt.want || got > tt.want+tt.want/10 {
					t.Fatalf("delay is %s, want %s and at most a tenth more", got, tt.want)
				}
			}
		})
	}
}

func TestCallAsksAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := newServer(t)
		call := func(commit string) Wish { return Wish{Interval: never, Call: Call{Commit: commit}} }
		s.poller.Watch(ctx, repo("a"), as("x"), call("old"))
		for _, step := range []struct {
			name, commit, call string
			// at once, and after lag.
			now, later int
		}{
			{"the first look", "one", "old", 1, 0},
			{"no news", "one", "old", 0, 0},
			{"a commit that shows at once", "two", "two", 1, 0},
			{"a commit that does not show", "two", "three", 1, int(maxLag / lagPause)},
			{"a commit that is overtaken", "four", "five", 1, 0},
			{"the branch is gone", "four", "", 1, 0},
			{"what is known already", "four", "four", 1, 0},
		} {
			s.answers(step.commit, nil)
			before := s.times()
			if step.name == "the first look" {
				before = 0
			}
			s.poller.Watch(ctx, repo("a"), as("x"), call(step.call))
			now := s.times() - before
			wait(time.Hour)
			if later := s.times() - before - now; now != step.now || later != step.later {
				t.Errorf("%s: asked %d times at once and %d later, want %d and %d", step.name, now, later, step.now, step.later)
			}
			if got, _ := s.poller.Watch(ctx, repo("a"), as("x"), call(step.call)); got.Commit != step.commit {
				t.Errorf("%s: the commit is %q, want %q, whatever was called", step.name, got.Commit, step.commit)
			}
		}
	})
}

// A Git server that does not answer the question after its call is asked again
// soon, however rarely it is asked where it calls.
func TestACallThatMeetsAFailureIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := newServer(t)
		hooked := Wish{Interval: hookedInterval}
		s.poller.Watch(ctx, repo("a"), as("x"), hooked)
		s.news()
		s.answers("", errors.New("502"))
		hooked.Call = Call{Commit: "two"}
		s.poller.Watch(ctx, repo("a"), as("x"), hooked)
		s.news()
		// It answers again, and its replica knows of the push a moment later.
		s.answers("one", nil)
		wait(firstRetry)
		s.answers("two", nil)
		wait(lagPause)
		if got, _ := s.poller.Watch(ctx, repo("a"), as("x"), hooked); got.Commit != "two" || got.Err != nil {
			t.Errorf("20 seconds after the call: %+v", got)
		}
	})
}

func TestExpectAsksAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := newServer(t)
		s.poller.Watch(ctx, repo("a"), as("x"), every(time.Hour))
		s.poller.Watch(ctx, repo("b"), as("x"), every(time.Hour))
		s.news()
		expect := func(name, commit string, asks int) {
			t.Helper()
			before := s.times()
			s.poller.Expect(repo(name), commit)
			if got := s.times() - before; got != asks {
				t.Errorf("asked %d times for %q of %s, want %d", got, commit, name, asks)
			}
		}
		expect("a", "one", 0)
		expect("gone", "two", 0)
		// One of the servers behind a name does not know of it yet.
		expect("a", "two", 1)
		s.answers("two", nil)
		wait(lagPause)
		if got := s.news(); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("told %v, want both", got)
		}
	})
}

// A GitRepo that is not polled gets what it asked for itself, whoever else asks
// the same server.
func TestPollingThatIsOffStaysOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := newServer(t)
		off := func(name string, force int64) string {
			w := Wish{Interval: never, Call: Call{Force: force}}
			s.poller.Watch(ctx, repo(name), as("x"), w)
			synctest.Wait()
			r, _ := s.poller.Watch(ctx, repo(name), as("x"), w)
			return r.Commit
		}
		s.poller.Watch(ctx, repo("dev"), as("x"), every(time.Minute))
		if got := off("prod", 0); got != "one" {
			t.Errorf("the first answer is %q", got)
		}
		s.news()
		s.answers("two", nil)
		wait(time.Hour)
		if got := s.news(); !slices.Equal(got, []string{"dev"}) {
			t.Errorf("told %v of what dev found", got)
		}
		if got := off("prod", 0); got != "one" {
			t.Errorf("without a call it gets %q", got)
		}
		if got := off("new", 0); got != "two" {
			t.Errorf("a new one gets %q, an answer of earlier", got)
		}
		if got := off("prod", 1); got != "two" {
			t.Errorf("called, it gets %q", got)
		}
	})
}

func TestInterval(t *testing.T) {
	minute, zero := metav1.Duration{Duration: time.Minute}, metav1.Duration{}
	called := fleet.GitRepoStatus{LastWebhookTime: metav1.Now()}
	for name, tt := range map[string]struct {
		repo fleet.GitRepo
		want time.Duration
	}{
		"standard":                {fleet.GitRepo{}, defaultInterval},
		"set":                     {fleet.GitRepo{Spec: fleet.GitRepoSpec{PollingInterval: &minute}}, time.Minute},
		"zero":                    {fleet.GitRepo{Spec: fleet.GitRepoSpec{PollingInterval: &zero}}, defaultInterval},
		"off":                     {fleet.GitRepo{Spec: fleet.GitRepoSpec{PollingInterval: &minute, DisablePolling: true}}, never},
		"with a webhook":          {fleet.GitRepo{Status: called}, hookedInterval},
		"set, and with a webhook": {fleet.GitRepo{Spec: fleet.GitRepoSpec{PollingInterval: &minute}, Status: called}, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			if got := interval(&tt.repo); got != tt.want {
				t.Errorf("interval is %s, want %s", got, tt.want)
			}
		})
	}
}
