package accounts

import (
	"context"
	"strings"
	"testing"

	authentication "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/flotilla-sh/flotilla/internal/apply"
	"github.com/flotilla-sh/flotilla/internal/fault"
)

// found has every account.
type found struct {
	typedcorev1.ServiceAccountInterface
}

func (found) Get(context.Context, string, metav1.GetOptions) (*corev1.ServiceAccount, error) {
	return &corev1.ServiceAccount{}, nil
}

// self is who the agent is; a cluster of an older version does not say.
type self string

func (s self) Create(context.Context, *authentication.SelfSubjectReview, metav1.CreateOptions) (*authentication.SelfSubjectReview, error) {
	if s == "" {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, "")
	}
	review := &authentication.SelfSubjectReview{}
	review.Status.UserInfo.Username = string(s)
	return review, nil
}

func TestTheAgentsOwnAccountIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		self    self
		account string
		refused bool
	}{
		"another account":             {self: "system:serviceaccount:agents:flotilla-agent", account: "dev"},
		"its own":                     {self: "system:serviceaccount:agents:flotilla-agent", account: "flotilla-agent", refused: true},
		"its own, not named":          {self: "system:serviceaccount:agents:" + Default},
		"one of the name elsewhere":   {self: "system:serviceaccount:others:flotilla-agent", account: "flotilla-agent"},
		"a cluster that does not say": {account: "dev"},
	} {
		t.Run(name, func(t *testing.T) {
			a := &Accounts{
				Namespace: "agents", Found: found{}, Self: test.self, Own: &apply.Engine{}, Spoke: &rest.Config{}, Clock: clock.RealClock{},
				Connect: func(*rest.Config) (*apply.Client, error) { return &apply.Client{}, nil },
			}
			engine, err := a.As(t.Context(), test.account)
			if refused := fault.ReasonOf(err, "") == ReasonOwn && fault.KindOf(err) == fault.Stalled; refused != test.refused {
				t.Fatalf("got %v", err)
			}
			if test.refused && !strings.Contains(err.Error(), "agents/flotilla-agent") || !test.refused && (err != nil || engine == nil) {
				t.Errorf("got %v, %v", engine, err)
			}
		})
	}
}
