// Package webhook hears from Git servers that something was pushed. A webhook
// only says "look now": it is written into status.webhookCommit and
// status.lastWebhookTime of the GitRepos that follow what was pushed, and the
// controller poll asks the Git server itself. Who is not known to hold the
// secret is refused; the same once more is one look more.
package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-sh/flotilla/internal/reconcile"
	"github.com/flotilla-sh/flotilla/internal/source/git"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

const (
	// bodyLimit is above what servers send for a push of two thousand commits.
	bodyLimit = 5 << 20
	// atOnce bounds how many bodies are in memory, and ofEach how many of one
	// sender; a request that finds no room waits for some patience.
	atOnce   = 64
	ofEach   = 4
	patience = 3 * time.Second
	// arrival is how long a body may take to come in.
	arrival = 3 * time.Second
	// writers is how many GitRepos are written at once for one webhook.
	writers = 8
)

// placeIndex is the cache's index of GitRepos by place.
const placeIndex = "flotilla.place"

// Receiver is the HTTP handler for webhooks.
type Receiver struct {
	// Client finds GitRepos and writes their status.
	Client client.Client
	// Live reads Secrets, which no cache holds.
	Live client.Reader
	// Namespace is the hub's own, where the secret for all GitRepos is.
	Namespace string
	Events    events.EventRecorder
	Clock     clock.PassiveClock

	sources sources
	looks   looks
	secrets secrets
	slots   chan struct{}
	count   *counter
}

// answer is what the sender is told.
type answer struct {
	code int
	text string
	// outcome is the word for it in the metric.
	outcome string
}

var (
	refused = answer{http.StatusUnauthorized, "the secret of this webhook is not the one that the hub knows for this repository, or the hub knows none", "unauthorized"}
	crowded = answer{http.StatusTooManyRequests, "too many requests; try again later", "limited"}
	nothing = answer{http.StatusOK, "heard; no GitRepo follows what was pushed", "ignored"}
	broken  = answer{http.StatusInternalServerError, "the hub could not take this webhook; try again", "failed"}
)

// ServeHTTP takes one webhook.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	from, a := r.serve(w, req)
	r.count.add(from, a.outcome)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if a.code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "5")
	}
	w.WriteHeader(a.code)
	_, _ = fmt.Fprintln(w, a.text)
}

func (r *Receiver) serve(w http.ResponseWriter, req *http.Request) (provider, answer) {
	if req.Method != http.MethodPost {
		return "", answer{http.StatusMethodNotAllowed, "webhooks are sent by POST", "malformed"}
	}
	from, ok := r.sources.allow(source(req), r.Clock.Now())
	if !ok {
		return "", crowded
	}
	// Who sends slowly, without any proof, keeps few places and not for long.
	for _, places := range []chan struct{}{from.places, r.slots} {
		leave, ok := enter(places)
		if !ok {
			return "", crowded
		}
		defer leave()
	}
	body, a := receive(w, req)
	if a.code != 0 {
		return "", a
	}
	c, err := read(req.Header, body)
	if err != nil {
		return c.from, answer{http.StatusBadRequest, err.Error(), "malformed"}
	}
	a, err = r.take(req.Context(), c, req.Header, body)
	if err != nil {
		log.FromContext(req.Context()).Error(err, "a webhook could not be taken", "provider", c.from)
		return c.from, broken
	}
	return c.from, a
}

// receive reads the body, which must come at once.
func receive(w http.ResponseWriter, req *http.Request) ([]byte, answer) {
	// A writer of a test knows no deadline.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(arrival))
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, bodyLimit))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, answer{http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", bodyLimit), "malformed"}
	}
	if err != nil {
		return nil, answer{http.StatusBadRequest, "the body could not be read", "malformed"}
	}
	return body, answer{}
}

// take acts on a webhook if its sender knows the secret.
func (r *Receiver) take(ctx context.Context, c call, h http.Header, body []byte) (answer, error) {
	repos, err := r.find(ctx, c)
	if err != nil {
		return answer{}, err
	}
	proof := r.prove(c, h, body)
	var known []*fleet.GitRepo
	for _, repo := range repos {
		ok, err := proof.of(ctx, repo)
		if err != nil {
			return answer{}, err
		}
		if ok {
			known = append(known, repo)
		}
	}
	if len(known) == 0 {
		// Who knows the secret for all may hear that nobody is interested.
		if ok, err := proof.forAll(ctx); err != nil || !ok {
			return refused, err
		}
	}
	if len(c.pushes) == 0 {
		return nothing, nil
	}
	told, err := r.tell(ctx, known, c.pushes)
	if err != nil {
		return answer{}, err
	}
	if told == 0 {
		return nothing, nil
	}
	return answer{http.StatusOK, fmt.Sprintf("heard; %d GitRepos look for new commits", told), "taken"}, nil
}

// find returns the GitRepos of a webhook's repository.
func (r *Receiver) find(ctx context.Context, c call) ([]*fleet.GitRepo, error) {
	var places []string
	for _, address := range c.urls {
		if p := place(address); p != "" && !slices.Contains(places, p) {
			places = append(places, p)
		}
	}
	if c.anywhere != "" {
		places = append(places, anywhere(c.anywhere))
	}
	var found []*fleet.GitRepo
	for _, p := range places {
		list := &fleet.GitRepoList{}
		if err := r.Client.List(ctx, list, client.MatchingFields{placeIndex: p}); err != nil {
			return nil, fmt.Errorf("look for GitRepos: %w", err)
		}
		for i := range list.Items {
			found = append(found, &list.Items[i])
		}
	}
	return found, nil
}

// follows returns the push that a GitRepo waits for, if it is among these.
func follows(repo *fleet.GitRepo, pushes []push) (push, bool) {
	ref := git.Remote{Branch: repo.Spec.Branch, Revision: repo.Spec.Revision}.Ref()
	i := slices.IndexFunc(pushes, func(p push) bool { return p.ref == ref && ref != "" })
	if i < 0 {
		return push{}, false
	}
	return pushes[i], true
}

// tell writes into the status of those that follow what was pushed.
func (r *Receiver) tell(ctx context.Context, repos []*fleet.GitRepo, pushes []push) (told int, err error) {
	writes := reconcile.AtMost(writers)
	for _, repo := range repos {
		p, ok := follows(repo, pushes)
		if !ok {
			continue
		}
		told++
		writes.Do(func() error {
			return r.looks.tell(client.ObjectKeyFromObject(repo), p, func(p push) error {
				// It may be later, when the request is over.
				ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
				defer cancel()
				return r.note(ctx, repo, p)
			})
		})
	}
	err = writes.Wait()
	r.looks.forget()
	return told, err
}

// note writes two fields that nobody else writes, whatever else has changed.
func (r *Receiver) note(ctx context.Context, repo *fleet.GitRepo, p push) error {
	status := map[string]any{
		"webhookCommit": p.commit, "lastWebhookTime": r.Clock.Now().UTC().Format(time.RFC3339),
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": repo.UID}, "status": status})
	if err != nil {
		return err
	}
	made := &metav1.PartialObjectMetadata{}
	made.SetGroupVersionKind(fleet.GroupVersion.WithKind("GitRepo"))
	made.Namespace, made.Name = repo.Namespace, repo.Name
	err = r.Client.Status().Patch(ctx, made, client.RawPatch(types.MergePatchType, patch))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("tell GitRepo %s/%s of a push: %w", repo.Namespace, repo.Name, err)
	}
	return nil
}

// proof checks one webhook against the secrets of GitRepos; each is read once.
type proof struct {
	receiver *Receiver
	check    func(secret map[string][]byte) bool
	asked    map[client.ObjectKey]bool
}

func (r *Receiver) prove(c call, h http.Header, body []byte) *proof {
	return &proof{r, func(secret map[string][]byte) bool { return authentic(c.from, h, body, secret) }, map[client.ObjectKey]bool{}}
}

// of tells whether the sender knows the secret of a GitRepo: its own where it
// names one, else that for all.
func (p *proof) of(ctx context.Context, repo *fleet.GitRepo) (bool, error) {
	if repo.Spec.WebhookSecret == "" {
		return p.forAll(ctx)
	}
	key := client.ObjectKey{Namespace: repo.Namespace, Name: repo.Spec.WebhookSecret}
	ok, err := p.by(ctx, key)
	if apierrors.IsNotFound(err) {
		p.receiver.Events.Eventf(repo, nil, "Warning", "SecretMissing", "Webhook",
			"a webhook was refused: spec.webhookSecret: there is no secret %s in namespace %s: create it, or correct the name", key.Name, key.Namespace)
		return false, nil
	}
	return ok, err
}

func (p *proof) forAll(ctx context.Context) (bool, error) {
	ok, err := p.by(ctx, client.ObjectKey{Namespace: p.receiver.Namespace, Name: fleet.WebhookSecret})
	return ok, client.IgnoreNotFound(err)
}

func (p *proof) by(ctx context.Context, key client.ObjectKey) (bool, error) {
	if ok, asked := p.asked[key]; asked {
		return ok, nil
	}
	data, err := p.receiver.secrets.get(ctx, p.receiver.Live, key, p.receiver.Clock.Now())
	if err != nil {
		return false, err
	}
	p.asked[key] = p.check(data)
	return p.asked[key], nil
}
