// Package git turns a Git remote into snapshots. It is the only door to
// go-git: nothing of that library appears in the package's signatures.
//
// Resolve asks a server which commit a branch or tag stands for; a Cache keeps
// one bare repository on disk for each distinct URL, credential and TLS
// setting, so that a later fetch moves only what changed and content never
// crosses from one credential to another.
//
// Submodules are fetched when somebody reads what is in them (see Read), from
// repositories of their own in the cache.
//
// Errors are written for the person who must act and carry their kind (see
// package fault). They never hold a password, a key or the user part of a URL.
package git
