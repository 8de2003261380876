package git

import (
	"strconv"
	"strings"

	"github.com/flotilla-sh/flotilla/internal/digest"
)

// Identity is a digest of the remote's URL, ref, credentials and TLS setting.
// Remotes of equal identity get equal answers, so one poll serves them all. It
// is a key for maps, not for display.
func Identity(r Remote) string {
	t := r.target()
	ref := [][]byte{[]byte(t.branch), []byte(t.tag), []byte(t.commit)}
	return digest.Of(append(r.access(), ref...)...)
}

// Followed is a digest of what is followed, whatever opens it: the URL and the ref.
func Followed(r Remote) string {
	t := r.target()
	return digest.Of([]byte(strings.TrimSpace(r.URL)), []byte(t.branch), []byte(t.tag), []byte(t.commit))
}

// repositoryID is Identity without the ref: what may share one repository on
// disk.
func (r Remote) repositoryID() string {
	return digest.Of(r.access()...)
}

func (r Remote) access() [][]byte {
	c := r.Credentials
	return append(c.App.identity(), [][]byte{
		[]byte(strings.TrimSpace(r.URL)),
		[]byte(c.Username), []byte(c.Password), c.PrivateKey, c.KnownHosts,
		r.TLS.CABundle, strconv.AppendBool(nil, r.TLS.InsecureSkipTLSVerify),
	}...)
}
