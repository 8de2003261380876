package poll

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-sh/flotilla/internal/backoff"
	"github.com/flotilla-sh/flotilla/internal/source/git"
)

const (
	// resolveTimeout bounds one question to a Git server.
	resolveTimeout = 30 * time.Second
	// firstRetry and lastRetry bound when a question that was not answered is put
	// again, where the interval is not shorter than the one and longer than the
	// other.
	firstRetry, lastRetry = 15 * time.Second, 5 * time.Minute
	// A Git server may call before all that answer for it know of the push: it is
	// asked every lagPause until the commit shows, for maxLag.
	lagPause, maxLag = 2 * time.Second, 30 * time.Second
)

// Wish is how a GitRepo wants its repository to be asked.
type Wish struct {
	// Interval is the time from one question to the next.
	Interval time.Duration
	// Call is the last one; where it differs from what the same GitRepo wished
	// before, the server is asked at once.
	Call Call
}

// Call is a reason to ask at once: a webhook, or a user's wish.
type Call struct {
	// Commit is what a webhook says was pushed, and At when that was.
	Commit string
	At     time.Time
	// Force is the number of a user's last wish to fetch again.
	Force int64
}

// result is the answer of the last poll.
type result struct {
	// Commit is the newest commit that a poll found, also when the last one
	// failed.
	Commit string
	// Err is why the last poll failed.
	Err error
}

// poller asks Git servers for their newest commits: one poll for each distinct
// URL, ref, credential and TLS setting, however many GitRepos share it, and one
// for each GitRepo that is not polled.
type poller struct {
	resolve func(context.Context, git.Remote) (string, error)
	notify  func(types.NamespacedName)

	mu    sync.Mutex
	polls map[string]*poll
	// identity is the poll that each GitRepo takes part in.
	identity map[types.NamespacedName]string
}

// poll is one loop and the GitRepos that wait for its answers.
type poll struct {
	remote git.Remote
	wishes map[types.NamespacedName]Wish
	result result
	asked  bool
	cancel context.CancelFunc
	// hurry ends a wait that has become too long.
	hurry chan struct{}
	// expected is a commit that was announced and has not shown, until when it
	// is waited for.
	expected string
	until    time.Time
}

// newPoller returns a poller that asks by resolve, and calls notify when an
// answer changed.
func newPoller(resolve func(context.Context, git.Remote) (string, error), notify func(types.NamespacedName)) *poller {
	return &poller{
		resolve:  resolve,
		notify:   notify,
		polls:    map[string]*poll{},
		identity: map[types.NamespacedName]string{},
	}
}

// Watch lets a GitRepo take part in the poll of its remote until ctx ends or
// Drop is called, and returns the last answer. ok is false while there is none.
func (p *poller) Watch(ctx context.Context, repo types.NamespacedName, remote git.Remote, wish Wish) (r result, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := pollOf(repo, remote, wish)
	if old := p.identity[repo]; old != "" && old != id {
		p.leave(repo, old)
	}
	p.identity[repo] = id
	current := p.polls[id]
	if current == nil {
		current = p.begin(ctx, id, remote)
	}
	if current.grant(repo, wish) {
		current.askNow()
	}
	return current.result, current.asked
}

// Expect makes the server of a GitRepo be asked at once, and until it tells of a
// commit that it is known to have.
func (p *poller) Expect(repo types.NamespacedName, commit string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if current := p.polls[p.identity[repo]]; current != nil && current.expect(commit) {
		current.askNow()
	}
}

// pollOf names the poll of a GitRepo. One that is not polled has its own: what
// others find out is not meant for it, and it begins with an answer of its own.
func pollOf(repo types.NamespacedName, remote git.Remote, wish Wish) string {
	if wish.Interval == never {
		return git.Identity(remote) + " " + repo.String()
	}
	return git.Identity(remote)
}

// grant takes a wish in and tells whether the server must be asked at once.
func (p *poll) grant(repo types.NamespacedName, wish Wish) (now bool) {
	last, known := p.wishes[repo]
	before := p.shortest()
	p.wishes[repo] = wish
	if !known || last.Call == wish.Call {
		return p.shortest() < before
	}
	p.expect(wish.Call.Commit)
	return true
}

// expect begins to wait for a commit, where that is news.
func (p *poll) expect(commit string) bool {
	if commit == "" || commit == p.result.Commit {
		return false
	}
	p.expected, p.until = commit, time.Now().Add(maxLag)
	return true
}

// askNow ends the wait for the next question.
func (p *poll) askNow() {
	select {
	case p.hurry <- struct{}{}:
	default:
	}
}

// Drop ends a GitRepo's part in its poll.
func (p *poller) Drop(repo types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if id := p.identity[repo]; id != "" {
		p.leave(repo, id)
	}
}

func (p *poller) leave(repo types.NamespacedName, id string) {
	delete(p.identity, repo)
	current := p.polls[id]
	delete(current.wishes, repo)
	if len(current.wishes) == 0 {
		current.cancel()
		delete(p.polls, id)
	}
}

func (p *poller) begin(ctx context.Context, id string, remote git.Remote) *poll {
	ctx, cancel := context.WithCancel(ctx)
	current := &poll{
		remote: remote, wishes: map[types.NamespacedName]Wish{}, cancel: cancel, hurry: make(chan struct{}, 1),
	}
	p.polls[id] = current
	go p.loop(ctx, current)
	return current
}

func (p *poller) loop(ctx context.Context, current *poll) {
	failures := 0
	for {
		commit, err := p.ask(ctx, current.remote)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			failures = 0
		} else {
			failures++
		}
		p.answer(current, commit, err)
		select {
		case <-ctx.Done():
			return
		case <-current.hurry:
		case <-time.After(p.pause(current, failures)):
		}
	}
}

func (p *poller) ask(ctx context.Context, remote git.Remote) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	return p.resolve(ctx, remote)
}

// answer keeps a result and tells those who wait where it says something new.
func (p *poller) answer(current *poll, commit string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := result{Commit: commit, Err: err}
	if err != nil {
		next.Commit = current.result.Commit
	}
	if next.Commit == current.expected || next.Commit != current.result.Commit {
		current.expected = ""
	}
	news := !current.asked || next.Commit != current.result.Commit || text(next.Err) != text(current.result.Err)
	current.asked, current.result = true, next
	if !news {
		return
	}
	for repo := range current.wishes {
		p.notify(repo)
	}
}

// pause is the time to the next question.
func (p *poller) pause(current *poll, failures int) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !time.Now().Before(current.until):
		current.expected = ""
	case current.expected != "" && failures == 0:
		return lagPause
	}
	return delay(current.shortest(), failures)
}

// shortest is the shortest interval that a GitRepo of this poll asks for; zero
// where there is none.
func (p *poll) shortest() time.Duration {
	shortest := time.Duration(0)
	for _, w := range p.wishes {
		if shortest == 0 || w.Interval < shortest {
			shortest = w.Interval
		}
	}
	return shortest
}

// delay is the interval, with jitter. After a failure it begins soon, also where
// the interval is long: one question without an answer is not enough. It doubles
// with each further one, up to the interval.
func delay(interval time.Duration, failures int) time.Duration {
	pause := backoff.Backoff{Min: interval, Max: interval, Jitter: 0.1}
	if failures > 0 {
		pause.Min, pause.Max = min(interval, firstRetry), lastRetry
		if interval != never {
			pause.Max = max(interval, lastRetry)
		}
	}
	return pause.After(failures, rand.Float64)
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
