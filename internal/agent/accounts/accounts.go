// Package accounts acts on the agent's cluster as the service accounts that
// bundles name, so that a bundle can do no more than its account may.
package accounts

import (
	"context"
	"fmt"
	"sync"
	"time"

	authentication "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationv1 "k8s.io/client-go/kubernetes/typed/authentication/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/flotilla-sh/flotilla/internal/apply"
	"github.com/flotilla-sh/flotilla/internal/fault"
)

const (
	// Default stands for all bundles that name no account, where it exists.
	Default = "fleet-default"
	// ReasonMissing: the account of a bundle does not exist.
	ReasonMissing = "ServiceAccountMissing"
	// ReasonOwn: a bundle names the agent's own account.
	ReasonOwn = "ServiceAccountOfTheAgent"

	// remembered is how long it counts whether an account exists, and retry
	// when to look again for one that is missing.
	remembered = 30 * time.Second
	retry      = 30 * time.Second
)

// Accounts makes engines that act as accounts.
type Accounts struct {
	// Namespace is that of the accounts.
	Namespace string
	// Found reads the accounts.
	Found typedcorev1.ServiceAccountInterface
	// Self tells who the agent is.
	Self authenticationv1.SelfSubjectReviewInterface
	// Own is the agent's own engine.
	Own *apply.Engine
	// Spoke is the cluster, and Connect makes a client for it.
	Spoke   *rest.Config
	Connect func(*rest.Config) (*apply.Client, error)
	Clock   clock.PassiveClock

	mu      sync.Mutex
	engines map[string]*apply.Engine
	looked  map[string]look
	// self is the agent's user name, once it was asked for.
	self *string
}

// look is whether an account was there.
type look struct {
	exists bool
	at     time.Time
}

// As returns an engine that acts as an account. Without a name it is the default
// one where that exists, else the agent itself. An account that is named and
// missing is something to wait for: the rights of others are never used instead.
func (a *Accounts) As(ctx context.Context, name string) (*apply.Engine, error) {
	wanted := name
	if wanted == "" {
		wanted = Default
	} else if err := a.refuseOwn(ctx, name); err != nil {
		return nil, err
	}
	exists, err := a.exists(ctx, wanted)
	switch {
	case err != nil:
		return nil, err
	case exists:
		return a.engine(wanted)
	case name == "":
		return a.Own, nil
	}
	return nil, fault.Wait(retry, ReasonMissing, fmt.Errorf(
		"the service account %s/%s does not exist on this cluster: create it, with the rights that the bundle needs", a.Namespace, name))
}

// refuseOwn refuses the agent's own account by name: who may name it could do
// everything that the agent can, whatever the default account allows.
func (a *Accounts) refuseOwn(ctx context.Context, name string) error {
	self, err := a.whoAmI(ctx)
	if err != nil || self != a.user(name) {
		return err
	}
	return fault.Stall(ReasonOwn, fmt.Errorf(
		"the service account %s/%s is the agent's own, and no bundle may act as it by name: name another account, or none", a.Namespace, name))
}

// whoAmI asks once who the agent is for its cluster. A cluster that does not
// know how to say so is older than this question.
func (a *Accounts) whoAmI(ctx context.Context) (string, error) {
	a.mu.Lock()
	known := a.self
	a.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	review, err := a.Self.Create(ctx, &authentication.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("ask the cluster who the agent is: %w", err)
	}
	name := ""
	if err == nil {
		name = review.Status.UserInfo.Username
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.self = &name
	return name, nil
}

// user is the user name of an account.
func (a *Accounts) user(name string) string {
	return "system:serviceaccount:" + a.Namespace + ":" + name
}

func (a *Accounts) exists(ctx context.Context, name string) (bool, error) {
	a.mu.Lock()
	known, ok := a.looked[name]
	a.mu.Unlock()
	if ok && a.Clock.Since(known.at) < remembered && (known.exists || name == Default) {
		return known.exists, nil
	}
	_, err := a.Found.Get(ctx, name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("look for the service account %s/%s: %w", a.Namespace, name, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.looked == nil {
		a.looked = map[string]look{}
	}
	a.looked[name] = look{exists: err == nil, at: a.Clock.Now()}
	return err == nil, nil
}

func (a *Accounts) engine(name string) (*apply.Engine, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e := a.engines[name]; e != nil {
		return e, nil
	}
	config := rest.CopyConfig(a.Spoke)
	config.Impersonate = rest.ImpersonationConfig{UserName: a.user(name)}
	client, err := a.Connect(config)
	if err != nil {
		return nil, err
	}
	if a.engines == nil {
		a.engines = map[string]*apply.Engine{}
	}
	a.engines[name] = apply.NewEngine(client)
	return a.engines[name], nil
}
