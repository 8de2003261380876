package access

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/source/chart"
	"github.com/flotilla-sh/flotilla/internal/source/chartref"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// Charts returns how servers of charts are reached for the bundle of each
// directory of a GitRepo.
func (r *Reader) Charts(ctx context.Context, repo *fleet.GitRepo) (func(dir string) chart.Access, error) {
	urls, err := chart.URLPattern(repo.Spec.HelmRepoURLRegex)
	if err != nil {
		return nil, fmt.Errorf("spec.%w", err)
	}
	finish := func(a chart.Access) chart.Access { return withRepo(a, repo, urls) }
	switch {
	case repo.Spec.HelmSecretNameForPaths != "":
		data, err := r.helmSecret(ctx, repo.Namespace, repo.Spec.HelmSecretNameForPaths, "helmSecretNameForPaths")
		if err != nil {
			return nil, err
		}
		paths, err := chart.PathAccessesFromSecret(data)
		if err != nil {
			return nil, badSecret(repo.Namespace, repo.Spec.HelmSecretNameForPaths, err)
		}
		return func(dir string) chart.Access { return finish(paths.Of(dir)) }, nil
	case repo.Spec.HelmSecretName != "":
		a, err := r.access(ctx, repo.Namespace, repo.Spec.HelmSecretName)
		return func(string) chart.Access { return finish(a) }, err
	}
	return func(string) chart.Access { return finish(chart.Access{}) }, nil
}

// withRepo adds what a GitRepo says of TLS and of the URLs that get the
// credentials.
func withRepo(a chart.Access, repo *fleet.GitRepo, urls *regexp.Regexp) chart.Access {
	if len(a.CACerts) == 0 {
		a.CACerts = repo.Spec.CABundle
	}
	a.Insecure = a.Insecure || repo.Spec.InsecureSkipTLSverify
	a.URLs = urls
	return a
}

// access reads a Secret with the access to servers of charts. It names no URLs
// yet that get the credentials.
func (r *Reader) access(ctx context.Context, namespace, name string) (chart.Access, error) {
	data, err := r.helmSecret(ctx, namespace, name, "helmSecretName")
	if err != nil {
		return chart.Access{}, err
	}
	a, err := chart.AccessFromSecret(data)
	if err != nil {
		return a, badSecret(namespace, name, err)
	}
	if len(a.PrivateKey) > 0 && len(bytes.TrimSpace(a.KnownHosts)) == 0 {
		a.KnownHosts, err = r.hostKeys(ctx)
	}
	return a, err
}

func (r *Reader) helmSecret(ctx context.Context, namespace, name, field string) (map[string][]byte, error) {
	secret := &corev1.Secret{}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		return nil, fault.Wait(retryMissingSecret, ReasonSecretMissing, fmt.Errorf(
			"spec.%s: there is no secret %s in namespace %s: create it, or correct the name", field, name, namespace))
	}
	if err != nil {
		return nil, fmt.Errorf("read secret %s/%s: %w", namespace, name, err)
	}
	return secret.Data, nil
}

// badSecret is looked at again: Secrets are not watched.
func badSecret(namespace, name string, err error) error {
	return fault.Wait(retryMissingSecret, fault.ReasonOf(err, "InvalidSecret"), fmt.Errorf("secret %s/%s: %w", namespace, name, err))
}

// HelmOpCharts returns how the servers of a HelmOp's charts are reached. The
// credentials are for the scheme and host of the chart that it names itself.
func (r *Reader) HelmOpCharts(ctx context.Context, op *fleet.HelmOp) (chart.Access, error) {
	a := chart.Access{}
	if op.Spec.HelmSecretName != "" {
		var err error
		if a, err = r.access(ctx, op.Namespace, op.Spec.HelmSecretName); err != nil {
			return a, err
		}
	}
	a.Insecure = a.Insecure || op.Spec.InsecureSkipTLSverify
	ref, err := chartref.Parse(op.Spec.Helm.Repo, op.Spec.Helm.Chart, op.Spec.Helm.Version)
	if err != nil {
		return a, fault.Stall(chart.ReasonInvalid, err)
	}
	a.URLs = regexp.MustCompile("^" + regexp.QuoteMeta(hostOf(ref.URL)) + "([/:].*)?$")
	return a, nil
}

// hostOf is a URL up to its path.
func hostOf(url string) string {
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok { // user@host:path
		host, _, _ := strings.Cut(url, ":")
		return host
	}
	host, _, _ := strings.Cut(rest, "/")
	return scheme + "://" + host
}
