package git

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/source"
)

// ReasonSubmodule is the reason of a submodule that cannot be put in place.
const ReasonSubmodule = "InvalidSubmodule"

const (
	// maxDepth is how deep submodules may hold others, and maxSubmodules how many
	// one repository may have with all in them; a repository can hold itself.
	maxDepth      = 10
	maxSubmodules = 500
)

// submodules is what a tree knows of them.
type submodules struct {
	// remote is where the tree came from, at where it is in the whole repository,
	// and depth in how many others.
	remote Remote
	at     string
	depth  int
	// placed are the trees of submodules, by place.
	placed map[string]*tree
	// met are those that a reader came upon and that are not placed; the whole
	// repository has one list with all that are in it.
	met map[string]gitlink

	declaredBy  map[string]declaration
	declaredErr error
}

// gitlink is the entry of a submodule: a commit of another repository.
type gitlink struct {
	holder *tree
	at     string
	commit plumbing.Hash
}

// place is where it is in the whole repository.
func (l gitlink) place() string { return path.Join(l.holder.at, l.at) }

// meet notes that somebody wants to see what is in a submodule.
func (n node) meet() {
	link := gitlink{n.in, n.at, n.hash}
	n.in.met[link.place()] = link
}

// declared tells whether .gitmodules names a submodule. Where it cannot be read,
// it may.
func (n node) declared() bool {
	all, err := n.in.declarations()
	_, ok := all[n.at]
	return ok || err != nil
}

// Read gives the tree of a commit to a reader, as Fetch returns it. Where the
// reader comes upon submodules, they are fetched, and it is called again with
// them in place, until it comes upon no more. What nobody looks at is not
// fetched, and its server need not be there. What a reader found with a tree
// that lacked something is to be forgotten.
func (c *Cache) Read(ctx context.Context, r Remote, commit string, read func(source.Tree)) error {
	whole, err := c.fetch(ctx, r, commit)
	if err != nil {
		return err
	}
	g := gathering{cache: c, whole: whole, bytes: size(whole.store.dir)}
	for {
		read(source.Tree{Commit: whole.commit.String(), FS: whole})
		whole.mu.Lock()
		links := maps.Clone(whole.met)
		clear(whole.met)
		whole.mu.Unlock()
		if len(links) == 0 {
			return nil
		}
		for _, at := range slices.Sorted(maps.Keys(links)) {
			if err := g.place(ctx, links[at]); err != nil {
				return err
			}
		}
	}
}

// gathering brings the submodules of one repository together.
type gathering struct {
	cache *Cache
	whole *tree
	// count and bytes are those of what is there so far.
	count int
	bytes int64
}

// place puts a submodule in its place. Its errors say where it is declared.
func (g *gathering) place(ctx context.Context, link gitlink) error {
	file := path.Join(link.holder.at, gitmodules)
	declared, err := link.holder.declarations()
	if err != nil {
		return fault.At(file, 0, err)
	}
	d := declared[link.at]
	from, err := g.remote(link, d)
	var sub *tree
	if err == nil {
		sub, err = g.fetch(ctx, link, from)
	}
	if err != nil {
		return fault.At(file, d.line, fmt.Errorf("submodule %q: %w%s", link.place(), err, g.withheld(from, err)))
	}
	sub.submodules.at, sub.depth, sub.met = link.place(), link.holder.depth+1, g.whole.met
	g.whole.mu.Lock()
	defer g.whole.mu.Unlock()
	link.holder.placed[link.at] = sub
	return nil
}

func (g *gathering) fetch(ctx context.Context, link gitlink, from Remote) (*tree, error) {
	if link.holder.depth >= maxDepth {
		return nil, fault.Stall(ReasonSubmodule, fmt.Errorf("submodules are in each other more than %d deep; does a repository hold itself?", maxDepth))
	}
	if g.count++; g.count > maxSubmodules {
		return nil, fault.Stall(ReasonSubmodule, fmt.Errorf("there are more than %d submodules; does a repository hold itself?", maxSubmodules))
	}
	limit := g.cache.limit
	if limit > 0 {
		limit = max(limit-g.bytes, 1)
	}
	sub, err := g.cache.fetchWithin(ctx, from, link.commit, limit)
	if err == nil {
		g.bytes += size(sub.store.dir)
		sub.store = sub.store.sharing(g.whole.store)
	}
	if fault.ReasonOf(err, "") == ReasonTooLarge || err == nil && g.cache.limit > 0 && g.bytes > g.cache.limit {
		return nil, wait(retryTooLarge, ReasonTooLarge, "with %s, the repository and its submodules have more than %d bytes, which is all that the hub's Git cache may hold; "+
			"deploy less from submodules, or raise --git-cache-size (and the volume of --cache-dir)", from.place(), g.cache.limit)
	}
	return sub, err
}

// remote says how a submodule is reached: with what the GitRepo says about whom
// to trust, and with its credentials only at the server that they are for.
func (g *gathering) remote(link gitlink, d declaration) (Remote, error) {
	whole := g.whole.remote
	r := Remote{URL: d.url, Revision: link.commit.String(), TLS: whole.TLS, Mirror: whole.Mirror}
	var err error
	switch {
	case d.url == "":
		return r, fault.Stall(ReasonSubmodule, errors.New("it has no url"))
	case isRelative(d.url):
		if r.URL, err = relativeTo(link.holder.remote.URL, d.url); err != nil {
			return r, err
		}
	case whole.Mirror != nil:
		r.URL = whole.Mirror(d.url)
	}
	ep, err := r.endpoint()
	if err != nil {
		return r, err
	}
	if ep.Protocol == "git" {
		return r, invalidURL(errors.New("git:// knows neither login nor encryption, and is not taken for submodules"))
	}
	if home, err := whole.endpoint(); err == nil && sameServer(ep, home) {
		r.Credentials = whole.Credentials
		if ep.Protocol != "ssh" {
			r.Credentials = login(home, whole.Credentials)
		}
	}
	return r, nil
}

func sameServer(a, b *transport.Endpoint) bool {
	return a.Protocol == b.Protocol && strings.EqualFold(hostPort(a), hostPort(b))
}

// withheld says that a server which did not let us in was not shown the
// credentials, since they are for another.
func (g *gathering) withheld(r Remote, err error) string {
	home, homeErr := g.whole.remote.endpoint()
	ep, epErr := r.endpoint()
	if homeErr != nil || epErr != nil || sameServer(ep, home) {
		return ""
	}
	switch fault.ReasonOf(err, "") {
	case ReasonUnauthorized, ReasonInvalidSecret, ReasonRepositoryNotFound, ReasonHostKeyUnknown:
		return fmt.Sprintf("; the credentials of the GitRepo are sent to %s://%s alone: name the submodule by a URL of that server, "+
			"such as ../name.git, or by one that needs no login", home.Protocol, hostPort(home))
	}
	return ""
}
