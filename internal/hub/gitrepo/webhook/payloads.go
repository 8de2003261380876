package webhook

import (
	"net/http"
	"slices"
	"strings"
)

// hubPush is the body of GitHub, which Gitea and Gogs follow.
type hubPush struct {
	Ref        string `json:"ref"`
	After      string `json:"after"`
	Repository struct {
		Clone string `json:"clone_url"`
		SSH   string `json:"ssh_url"`
		HTML  string `json:"html_url"`
		Git   string `json:"git_url"`
	} `json:"repository"`
}

func (c *call) readHub(event string, text []byte) error {
	p, err := decode[hubPush](text)
	if err != nil {
		return err
	}
	c.urls = given(p.Repository.Clone, p.Repository.SSH, p.Repository.HTML, p.Repository.Git)
	if event == "push" {
		c.pushes = []push{moved(p.Ref, p.After)}
	}
	return nil
}

func readGitHub(c *call, h http.Header, text []byte) error {
	return c.readHub(h.Get("X-GitHub-Event"), text)
}

func readGogs(c *call, h http.Header, text []byte) error {
	event := h.Get("X-Gitea-Event")
	if event == "" {
		event = h.Get("X-Gogs-Event")
	}
	return c.readHub(event, text)
}

func readGitLab(c *call, _ http.Header, text []byte) error {
	p, err := decode[struct {
		Kind    string `json:"object_kind"`
		Ref     string `json:"ref"`
		After   string `json:"after"`
		Commit  string `json:"checkout_sha"`
		Project struct {
			Web  string `json:"web_url"`
			HTTP string `json:"git_http_url"`
			SSH  string `json:"git_ssh_url"`
		} `json:"project"`
	}](text)
	if err != nil {
		return err
	}
	c.urls = given(p.Project.HTTP, p.Project.SSH, p.Project.Web)
	if p.Kind == "push" || p.Kind == "tag_push" {
		next := moved(p.Ref, p.After)
		if p.Commit != "" { // of a tag the commit, and not the tag's object
			next.commit = p.Commit
		}
		c.pushes = []push{next}
	}
	return nil
}

func readBitbucket(c *call, _ http.Header, text []byte) error {
	p, err := decode[struct {
		Repository struct {
			FullName string `json:"full_name"`
			Links    struct {
				HTML struct {
					Href string `json:"href"`
				} `json:"html"`
			} `json:"links"`
		} `json:"repository"`
		Push struct {
			Changes []struct {
				New, Old *struct {
					Type   string `json:"type"`
					Name   string `json:"name"`
					Target struct {
						Hash string `json:"hash"`
					} `json:"target"`
				}
			} `json:"changes"`
		} `json:"push"`
	}](text)
	if err != nil {
		return err
	}
	c.urls = given(p.Repository.Links.HTML.Href)
	if p.Repository.FullName != "" {
		c.urls = append(c.urls, "https://bitbucket.org/"+p.Repository.FullName)
	}
	prefixes := map[string]string{"branch": "refs/heads/", "named_branch": "refs/heads/", "tag": "refs/tags/"}
	for _, change := range p.Push.Changes {
		if next := change.New; next != nil && prefixes[next.Type] != "" {
			c.pushes = append(c.pushes, moved(prefixes[next.Type]+next.Name, next.Target.Hash))
		} else if last := change.Old; next == nil && last != nil && prefixes[last.Type] != "" {
			c.pushes = append(c.pushes, push{ref: prefixes[last.Type] + last.Name})
		}
	}
	return nil
}

func readBitbucketServer(c *call, _ http.Header, text []byte) error {
	type link struct {
		Href string `json:"href"`
	}
	p, err := decode[struct {
		Repository struct {
			Slug    string `json:"slug"`
			Project struct {
				Key string `json:"key"`
			} `json:"project"`
			Links struct {
				Clone []link `json:"clone"`
				Self  []link `json:"self"`
			} `json:"links"`
		} `json:"repository"`
		Changes []struct {
			Ref struct {
				ID string `json:"id"`
			} `json:"ref"`
			To string `json:"toHash"`
		} `json:"changes"`
	}](text)
	if err != nil {
		return err
	}
	for _, l := range p.Repository.Links.Clone {
		c.urls = append(c.urls, given(l.Href)...)
	}
	for _, l := range p.Repository.Links.Self {
		base, _, ok := strings.Cut(strings.Replace(l.Href, "/users/", "/projects/", 1), "/projects/")
		if ok {
			c.urls = append(c.urls, base+"/scm/"+p.Repository.Project.Key+"/"+p.Repository.Slug)
		}
	}
	if key, slug := p.Repository.Project.Key, p.Repository.Slug; len(c.urls) == 0 && key != "" && slug != "" {
		// Servers that do not know their own address send no links.
		c.anywhere = key + "/" + slug
	}
	for _, change := range p.Changes {
		c.pushes = append(c.pushes, moved(change.Ref.ID, change.To))
	}
	return nil
}

func readAzure(c *call, _ http.Header, text []byte) error {
	p, err := decode[struct {
		Event    string `json:"eventType"`
		Resource struct {
			Refs []struct {
				Name string `json:"name"`
				New  string `json:"newObjectId"`
			} `json:"refUpdates"`
			Repository struct {
				Remote string `json:"remoteUrl"`
				SSH    string `json:"sshUrl"`
				Web    string `json:"webUrl"`
			} `json:"repository"`
		} `json:"resource"`
	}](text)
	if err != nil {
		return err
	}
	c.urls = given(p.Resource.Repository.Remote, p.Resource.Repository.SSH, p.Resource.Repository.Web)
	if p.Event != "git.push" {
		return nil
	}
	for _, ref := range p.Resource.Refs {
		c.pushes = append(c.pushes, moved(ref.Name, ref.New))
	}
	return nil
}

// given are the texts that are not empty.
func given(texts ...string) []string {
	return slices.DeleteFunc(texts, func(s string) bool { return strings.TrimSpace(s) == "" })
}
