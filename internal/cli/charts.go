package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/flotilla-sh/flotilla/internal/bundle"
	"github.com/flotilla-sh/flotilla/internal/charts"
	"github.com/flotilla-sh/flotilla/internal/source"
	"github.com/flotilla-sh/flotilla/internal/source/chart"
	"github.com/flotilla-sh/flotilla/internal/source/cosign"
	"github.com/flotilla-sh/flotilla/internal/source/git"
)

// chartFlags say how charts from elsewhere are reached.
type chartFlags struct {
	username, passwordFile, caCertsFile, keyFile, byPathFile string
	keyringFile, cosignFile                                  string
	urlRegex                                                 string
	insecure, basicHTTP                                      bool
	mirrors                                                  []string
}

func (f *chartFlags) add(cmd *cobra.Command) {
	set := cmd.Flags()
	set.StringVar(&f.username, "username", "", "user name for servers of charts")
	set.StringVar(&f.passwordFile, "password-file", "", "file with the password for servers of charts")
	set.StringVar(&f.keyFile, "ssh-privatekey-file", "", "file with the private key for charts in Git")
	set.StringVar(&f.caCertsFile, "cacerts-file", "", "file with certificates to trust servers of charts by")
	set.StringVar(&f.keyringFile, "keyring-file", "", "file with OpenPGP public keys one of which must have signed each chart (.prov)")
	set.StringVar(&f.cosignFile, "cosign-pub-file", "", "file with public keys, such as cosign.pub, one of which must have signed each chart as cosign does")
	set.StringVar(&f.byPathFile, "helm-credentials-by-path-file", "", "file with credentials by the directories of bundles, as in the Secret of helmSecretNameForPaths; takes the place of the others")
	set.StringVar(&f.urlRegex, "helm-repo-url-regex", "", "expression for the whole URLs that get the credentials (default: none do)")
	set.BoolVar(&f.insecure, "helm-insecure-skip-tls", false, "accept any certificate of servers of charts")
	set.BoolVar(&f.basicHTTP, "helm-basic-http", false, "ask OCI registries without TLS")
	set.StringArrayVar(&f.mirrors, "mirror", nil, "`upstream=mirror`: a beginning of URLs of charts, and what to ask in place of it; may be repeated")
	for _, name := range []string{"username", "helm-repo-url-regex", "mirror"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}

// check refuses flags that could not be used, whether or not a chart is needed.
func (f *chartFlags) check() error {
	if _, err := chart.ParseMirrors(f.mirrors); err != nil {
		return fmt.Errorf("--mirror: %w", err)
	}
	_, err := f.access()
	return err
}

// bring fetches the charts that drafts need. What cannot be had is an error of
// its draft.
func (f *chartFlags) bring(ctx context.Context, tree source.Tree, drafts []bundle.Draft) error {
	var packer *charts.Packer
	var reach func(dir string) chart.Access
	for i := range drafts {
		if !charts.Needed(&drafts[i]) {
			continue
		}
		if packer == nil {
			fetcher, err := f.fetcher()
			if err == nil {
				reach, err = f.access()
			}
			if err != nil {
				return err
			}
			packer = charts.NewPacker(fetcher)
			defer packer.Close()
		}
		drafts[i].Err = packer.Fill(ctx, charts.Input{Draft: &drafts[i], Tree: tree.FS, Access: reach(drafts[i].Path)})
	}
	return nil
}

// fetcher keeps archives and clones where programs keep such things.
func (f *chartFlags) fetcher() (*chart.Fetcher, error) {
	mirrors, err := chart.ParseMirrors(f.mirrors)
	if err != nil {
		return nil, fmt.Errorf("--mirror: %w", err)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	clones, err := git.NewCache(filepath.Join(dir, "flotilla", "git"))
	if err != nil {
		return nil, err
	}
	return chart.New(chart.Options{Dir: filepath.Join(dir, "flotilla", "charts"), Git: clones, Limits: chart.DefaultLimits(), Mirrors: mirrors})
}

func (f *chartFlags) access() (func(dir string) chart.Access, error) {
	urls, err := chart.URLPattern(f.urlRegex)
	if err != nil {
		return nil, fmt.Errorf("--helm-repo-url-regex: %w", err)
	}
	read := func(flag, name string) []byte {
		if name == "" || err != nil {
			return nil
		}
		var data []byte
		if data, err = os.ReadFile(name); err != nil {
			err = fmt.Errorf("--%s: %w", flag, err)
		}
		return data
	}
	if f.byPathFile != "" {
		data := read("helm-credentials-by-path-file", f.byPathFile)
		if err != nil {
			return nil, err
		}
		paths, err := chart.PathAccessesFromSecret(map[string][]byte{chart.KeyPaths: data})
		if err != nil {
			return nil, fmt.Errorf("--helm-credentials-by-path-file: %w", err)
		}
		return func(dir string) chart.Access {
			a := paths.Of(dir)
			a.URLs = urls
			return a
		}, nil
	}
	known := ""
	if f.keyFile != "" {
		known = filepath.Join(os.Getenv("HOME"), ".ssh", "known_hosts")
	}
	a := chart.Access{
		Username: f.username, Password: string(bytes.TrimRight(read("password-file", f.passwordFile), "\r\n")),
		CACerts: read("cacerts-file", f.caCertsFile), PrivateKey: read("ssh-privatekey-file", f.keyFile), KnownHosts: read("ssh-privatekey-file", known),
		Keyring: read("keyring-file", f.keyringFile), CosignKeys: read("cosign-pub-file", f.cosignFile),
		URLs: urls, Insecure: f.insecure, PlainHTTP: f.basicHTTP,
	}
	if err == nil && f.cosignFile != "" {
		if _, err = cosign.ParseKeys(a.CosignKeys); err != nil {
			err = fmt.Errorf("--cosign-pub-file: %w", err)
		}
	}
	return func(string) chart.Access { return a }, err
}
