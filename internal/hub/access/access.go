// Package access reads what a GitRepo needs to reach its repository: the URL,
// the credentials and whom to trust.
package access

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/source/git"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// retryMissingSecret is how soon a missing Secret is looked for again; Secrets
// are not watched.
const retryMissingSecret = 15 * time.Second

// ReasonSecretMissing is the reason of an error about a Secret that is not there.
const ReasonSecretMissing = "SecretMissing"

// Remote returns where and how to reach the repository of repo. Secrets are
// read live: no cache holds them.
func Remote(ctx context.Context, reader client.Reader, repo *fleet.GitRepo) (git.Remote, error) {
	remote := git.Remote{
		URL:      repo.Spec.Repo,
		Branch:   repo.Spec.Branch,
		Revision: repo.Spec.Revision,
		TLS: git.TLS{
			CABundle:              repo.Spec.CABundle,
			InsecureSkipTLSVerify: repo.Spec.InsecureSkipTLSverify,
		},
	}
	secret, err := credentialSecret(ctx, reader, repo)
	if err != nil || secret == nil {
		return remote, err
	}
	remote.Credentials, err = git.CredentialsFromSecret(string(secret.Type), secret.Data)
	if err != nil {
		// Secrets are not watched, so it is looked at again.
		return remote, fault.Wait(retryMissingSecret, fault.ReasonOf(err, "InvalidSecret"),
			fmt.Errorf("secret %s/%s: %w", secret.Namespace, secret.Name, err))
	}
	return remote, nil
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
