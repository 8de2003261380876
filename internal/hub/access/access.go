// Package access reads what a GitRepo needs to reach its repository: the URL,
// the credentials and whom to trust.
package access

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/source/chart"
	"github.com/flotilla-sh/flotilla/internal/source/git"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// retryMissingSecret is how soon a missing Secret is looked for again; Secrets
// are not watched.
const retryMissingSecret = 15 * time.Second

// ReasonSecretMissing is the reason of an error about a Secret that is not there.
const ReasonSecretMissing = "SecretMissing"

// Reader reads what GitRepos need.
type Reader struct {
	// Live reads Secrets, which no cache holds, and the host keys.
	Live client.Reader
	// Namespace is the hub's own, where the host keys for all are.
	Namespace string
	// Mirrors are asked in place of what GitRepos name.
	Mirrors chart.Mirrors

	apps apps
}

// Remote returns where and how to reach the repository of repo.
func (r *Reader) Remote(ctx context.Context, repo *fleet.GitRepo) (git.Remote, error) {
	remote := git.Remote{
		URL:      r.Mirrors.Of(repo.Spec.Repo),
		Mirror:   r.Mirrors.Of,
		Branch:   repo.Spec.Branch,
		Revision: repo.Spec.Revision,
		TLS: git.TLS{
			CABundle:              repo.Spec.CABundle,
			InsecureSkipTLSVerify: repo.Spec.InsecureSkipTLSverify,
		},
	}
	var err error
	if remote.Credentials, err = r.credentials(ctx, repo); err != nil {
		return remote, err
	}
	remote.Keys, err = r.keys(ctx, repo)
	return remote, err
}

// credentials reads the Secret of a GitRepo; the zero value is none.
func (r *Reader) credentials(ctx context.Context, repo *fleet.GitRepo) (git.Credentials, error) {
	secret, err := credentialSecret(ctx, r.Live, repo)
	if err != nil || secret == nil {
		return git.Credentials{}, err
	}
	c, err := git.CredentialsFromSecret(string(secret.Type), secret.Data)
	if fault.KindOf(err) == fault.Transient {
		return c, err // nothing is wrong with the Secret
	}
	if err != nil {
		// Secrets are not watched, so it is looked at again.
		return c, fault.Wait(retryMissingSecret, fault.ReasonOf(err, "InvalidSecret"),
			fmt.Errorf("secret %s/%s: %w", secret.Namespace, secret.Name, err))
	}
	r.apps.share(&c)
	if len(c.PrivateKey) > 0 && len(bytes.TrimSpace(c.KnownHosts)) == 0 {
		c.KnownHosts, err = r.hostKeys(ctx)
	}
	return c, err
}

// keys reads the public keys of which one must have signed a commit; nil where
// any commit will do.
func (r *Reader) keys(ctx context.Context, repo *fleet.GitRepo) (*git.Keys, error) {
	if repo.Spec.Verify == nil {
		return nil, nil
	}
	secret := &corev1.Secret{}
	name := client.ObjectKey{Namespace: repo.Namespace, Name: repo.Spec.Verify.SecretName}
	err := r.Live.Get(ctx, name, secret)
	if apierrors.IsNotFound(err) {
		return nil, fault.Wait(retryMissingSecret, ReasonSecretMissing, fmt.Errorf(
			"spec.verify.secretName: there is no secret %s in namespace %s: create it with the public keys of those who sign commits", name.Name, name.Namespace))
	}
	if err != nil {
		return nil, fmt.Errorf("read secret %s: %w", name, err)
	}
	keys, err := git.ParseKeys(name.String(), secret.Data)
	return keys, fault.Wait(retryMissingSecret, fault.ReasonOf(err, "InvalidSecret"), err)
}

// hostKeys are the keys of SSH servers for all GitRepos whose Secret has none;
// nil where there are none either.
func (r *Reader) hostKeys(ctx context.Context) ([]byte, error) {
	known := &corev1.ConfigMap{}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: fleet.KnownHostsConfigMap}, known)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the ConfigMap %s/%s: %w", r.Namespace, fleet.KnownHostsConfigMap, err)
	}
	return []byte(known.Data["known_hosts"]), nil
}

// maxApps bounds how many GitHub Apps are remembered.
const maxApps = 1000

// apps shares the tokens of a GitHub App among the GitRepos that use it.
type apps struct {
	mu   sync.Mutex
	byID map[string]*git.App
}

// share puts the App in that was seen first with the same key.
func (a *apps) share(c *git.Credentials) {
	if c.App == nil {
		return
	}
	id := c.App.Identity()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byID == nil || len(a.byID) >= maxApps {
		a.byID = map[string]*git.App{}
	}
	if known, ok := a.byID[id]; ok {
		c.App = known
		return
	}
	a.byID[id] = c.App
}

// credentialSecret returns the Secret that the GitRepo names; where it names
// none, the namespace's gitcredential if there is one, else nil.
func credentialSecret(ctx context.Context, reader client.Reader, repo *fleet.GitRepo) (*corev1.Secret, error) {
	name := repo.Spec.ClientSecretName
	if name == "" {
		name = fleet.GitCredentialSecret
	}
	secret := &corev1.Secret{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: repo.Namespace, Name: name}, secret)
	switch {
	case apierrors.IsNotFound(err) && repo.Spec.ClientSecretName == "":
		return nil, nil
	case apierrors.IsNotFound(err):
		return nil, fault.Wait(retryMissingSecret, ReasonSecretMissing, fmt.Errorf(
			"spec.clientSecretName: there is no secret %s in namespace %s: create it, or correct the name", name, repo.Namespace))
	case err != nil:
		return nil, fmt.Errorf("read secret %s/%s: %w", repo.Namespace, name, err)
	}
	return secret, nil
}
