package git

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"

	"github.com/flotilla-sh/flotilla/pkg/fleetyaml"
)

// Resolve returns the commit that the remote's revision or branch stands for.
// A revision of 40 hex digits is taken as it is, without asking the server.
func Resolve(ctx context.Context, r Remote) (string, error) {
	if _, err := r.endpoint(); err != nil {
		return "", err
	}
	t := r.target()
	if t.commit != "" {
		return t.commit, nil
	}
	s, refs, err := connect(ctx, r)
	if err != nil {
		return "", err
	}
	defer func() { _ = s.Close() }()
	return t.find(r, refs)
}

func (t target) find(r Remote, refs *packp.AdvRefs) (string, error) {
	if t.tag != "" {
		if h, ok := peeled(refs, t.tag); ok {
			return h.String(), nil
		}
		return "", tagNotFound(r, t.tag, refs)
	}
	if h, ok := refs.References[t.branch.String()]; ok {
		return h.String(), nil
	}
	return "", branchNotFound(r, t.branch, refs)
}

// ResolveName returns the commit that a tag, a branch or a full commit hash
// stands for, in this order, or that of the default branch where the name is
// empty. The remote names what was found, for Fetch.
func ResolveName(ctx context.Context, r Remote, name string) (Remote, string, error) {
	r.Branch, r.Revision = "", name
	if _, err := r.endpoint(); err != nil || isCommit(name) {
		return r, strings.ToLower(name), err
	}
	s, refs, err := connect(ctx, r)
	if err != nil {
		return r, "", err
	}
	defer func() { _ = s.Close() }()
	tag, branch := plumbing.NewTagReferenceName(name), plumbing.NewBranchReferenceName(name)
	if name == "" {
		branch = plumbing.NewBranchReferenceName(defaultBranch(refs))
	}
	if h, ok := peeled(refs, tag); ok && name != "" {
		return r, h.String(), nil
	}
	if h, ok := refs.References[branch.String()]; ok {
		r.Branch, r.Revision = branch.Short(), ""
		return r, h.String(), nil
	}
	return r, "", wait(retryMissing, ReasonBranchNotFound, "%q is no tag or branch of %s%s",
		name, r.place(), didYouMean(name, append(refNames(refs, "refs/heads/"), refNames(refs, "refs/tags/")...)))
}

// peeled is the commit that an annotated tag points to, or the ref's own hash.
func peeled(refs *packp.AdvRefs, name plumbing.ReferenceName) (plumbing.Hash, bool) {
	if h, ok := refs.Peeled[name.String()]; ok {
		return h, true
	}
	h, ok := refs.References[name.String()]
	return h, ok
}

func branchNotFound(r Remote, name plumbing.ReferenceName, refs *packp.AdvRefs) error {
	branch := name.Short()
	hint := didYouMean(branch, refNames(refs, "refs/heads/"))
	if head := defaultBranch(refs); hint == "" && head != "" {
		hint = fmt.Sprintf("; the repository's default branch is %q", head)
	}
	if r.Branch == "" && r.Revision == "" {
		hint += "; set branch, which is " + DefaultBranch + " if unset"
	}
	return wait(retryMissing, ReasonBranchNotFound, "branch %q not found in %s%s", branch, r.place(), hint)
}

func tagNotFound(r Remote, name plumbing.ReferenceName, refs *packp.AdvRefs) error {
	tag := name.Short()
	hint := didYouMean(tag, refNames(refs, "refs/tags/"))
	if _, ok := refs.References["refs/heads/"+tag]; ok {
		hint = "; it is a branch: set branch instead of revision"
	} else if abbreviated(tag) {
		hint = "; give all 40 digits of a commit"
	}
	return wait(retryMissing, ReasonTagNotFound, "revision %q is neither a tag of %s nor a full commit hash%s", tag, r.place(), hint)
}

// abbreviated tells whether s looks like the beginning of a commit hash.
func abbreviated(s string) bool {
	return len(s) >= 7 && len(s) < 40 && strings.Trim(s, "0123456789abcdef") == "" && strings.ContainsAny(s, "0123456789")
}

// didYouMean names the candidate nearest to a name, if one is near enough to
// be a slip of the pen.
func didYouMean(name string, candidates []string) string {
	if near := fleetyaml.Nearest(name, candidates); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

func refNames(refs *packp.AdvRefs, prefix string) []string {
	var names []string
	for name := range refs.References {
		if short, ok := strings.CutPrefix(name, prefix); ok {
			names = append(names, short)
		}
	}
	slices.Sort(names)
	return names
}

func defaultBranch(refs *packp.AdvRefs) string {
	for _, link := range refs.Capabilities.Get(capability.SymRef) {
		if head, ok := strings.CutPrefix(link, "HEAD:refs/heads/"); ok {
			return head
		}
	}
	return ""
}
