// Package fleetyaml reads fleet.yaml, the file that says how a directory of a
// Git repository becomes a bundle. Everything wrong with a file is reported at
// once, each with file, line and the full path of the key.
//
// The package is pure: it reads no files and imports nothing but the API types
// and YAML libraries, so that editors and other tools can use it.
package fleetyaml
