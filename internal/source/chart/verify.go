package chart

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/ProtonMail/go-crypto/openpgp"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"helm.sh/helm/v3/pkg/provenance"

	"github.com/flotilla-sh/flotilla/internal/source/chartref"
)

// keyring reads the keys that may sign charts.
func keyring(data []byte) (openpgp.EntityList, error) {
	read := openpgp.ReadKeyRing
	if bytes.Contains(data, []byte("-----BEGIN")) {
		read = openpgp.ReadArmoredKeyRing
	}
	keys, err := read(bytes.NewReader(data))
	if err != nil || len(keys) == 0 {
		return nil, stall(reasonSecret, "the key %s holds no OpenPGP public key: give the output of gpg --export", keyKeyring)
	}
	return keys, nil
}

// verify checks that one of the keys has signed an archive under its name.
func (s *Session) verify(what, name string, archive *os.File, signature []byte) error {
	keys, err := keyring(s.access.Keyring)
	if err != nil {
		return err
	}
	// The library takes names of files, and the name is part of what is signed.
	dir, err := os.MkdirTemp(s.store.dir, "part-*")
	if err != nil {
		return fmt.Errorf("cannot write the cache of charts: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	chart, signed := filepath.Join(dir, filepath.Base(name)), filepath.Join(dir, ".prov")
	if err := os.Link(archive.Name(), chart); err != nil {
		return fmt.Errorf("cannot write the cache of charts: %w", err)
	}
	if err := os.WriteFile(signed, signature, 0o600); err != nil {
		return fmt.Errorf("cannot write the cache of charts: %w", err)
	}
	if _, err := (&provenance.Signatory{KeyRing: keys}).Verify(chart, signed); err != nil {
		return wait(ReasonUnverified, "%s is not signed by a key of the keyring in the Secret: %w; sign it, or take the key %s out of the Secret", what, err, keyKeyring)
	}
	return nil
}

func unsigned(what string) error {
	return wait(ReasonUnverified, "%s has no signature (.prov), and the Secret has a keyring: sign it, or take the key %s out of the Secret", what, keyKeyring)
}

// verifyHTTP checks the signature beside an archive.
func (s *Session) verifyHTTP(ctx context.Context, c *client, address string, a Access, what string, archive *os.File) error {
	var signature bytes.Buffer
	file, query := splitQuery(address)
	err := c.download(ctx, file+".prov"+query, a, &signature, manifestLimit, "the signature of "+what)
	if err != nil {
		if reasonOf(err) == ReasonNotFound {
			return unsigned(what)
		}
		return err
	}
	return s.verify(what, path.Base(chartref.Place(address)), archive, signature.Bytes())
}

// verifyOCI checks the signature in an artifact.
func (s *Session) verifyOCI(ctx context.Context, r *registry, manifest *ocispec.Manifest, what found, archive *os.File) error {
	at := layer(manifest, mediaProvenance)
	if at == nil {
		return unsigned(what.name)
	}
	signature, err := r.small(ctx, r.repo.Blobs(), *at)
	if err != nil {
		return err
	}
	config, err := r.small(ctx, r.repo.Blobs(), manifest.Config)
	if err != nil {
		return err
	}
	var meta struct{ Name, Version string }
	if json.Unmarshal(config, &meta) != nil {
		return wait(ReasonArchive, "the configuration of %s is damaged", what.name)
	}
	return s.verify(what.name, meta.Name+"-"+meta.Version+".tgz", archive, signature)
}
