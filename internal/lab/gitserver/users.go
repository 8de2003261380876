package gitserver

import (
	"crypto/subtle"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// anonymous is the user of a repository that asks for none.
const anonymous = "anonymous"

// SetUsers asks for one of these users, by name and password, at every
// request to the repository. No users opens it to everybody. They are kept
// in the file ROOT/NAME.users, a line "user:password" each, readable by the
// owner only.
func (s *Server) SetUsers(name string, passwords map[string]string) error {
	if len(passwords) == 0 {
		return removeIfExists(s.usersFile(name))
	}
	var lines strings.Builder
	for _, user := range slices.Sorted(maps.Keys(passwords)) {
		fmt.Fprintf(&lines, "%s:%s\n", user, passwords[user])
	}
	return os.WriteFile(s.usersFile(name), []byte(lines.String()), 0o600)
}

// authenticate returns the user of a request and whether it may go on. A
// users file that cannot be read lets nobody in.
func (s *Server) authenticate(name string, r *http.Request) (string, bool) {
	data, err := os.ReadFile(s.usersFile(name))
	if os.IsNotExist(err) {
		return anonymous, true
	}
	user, password, given := r.BasicAuth()
	if err != nil || !given {
		return "", false
	}
	offered := []byte(user + ":" + password)
	for line := range strings.Lines(string(data)) {
		if subtle.ConstantTimeCompare([]byte(strings.TrimRight(line, "\r\n")), offered) == 1 {
			return user, true
		}
	}
	return "", false
}

func (s *Server) usersFile(name string) string {
	return filepath.Join(s.root, name+".users")
}

func removeIfExists(path string) error {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}
