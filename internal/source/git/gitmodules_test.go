package git

import "testing"

func TestRelativeURLs(t *testing.T) {
	for _, tt := range [][3]string{
		{"https://h/a/b.git", "../c.git", "https://h/a/c.git"},
		{"https://h/a/b.git/", "../../c/d", "https://h/c/d"},
		{"https://u:p@h:8443/a/b", "./c", "https://u:p@h:8443/a/b/c"},
		{"https://h/b", "../c", "https://h/c"},
		{"https://h/b?x=y", "../c", "https://h/c"},
		{"ssh://git@h:2222/a/b.git", "../c.git", "ssh://git@h:2222/a/c.git"},
		{"git@h:a/b.git", "../c.git", "git@h:a/c.git"},
		{"git@h:a/b.git", "../../c/d.git", "git@h:c/d.git"},
		{"git@h:/srv/b.git", "../c.git", "git@h:/srv/c.git"},
		{"https://h/a", "../../c", ""},
		{"git@h:a", "../../c", ""},
	} {
		got, err := relativeTo(tt[0], tt[1])
		if got != tt[2] || (err != nil) != (tt[2] == "") {
			t.Errorf("%s of %s is %q, %v, want %q", tt[1], tt[0], got, err, tt[2])
		}
	}
}
