// Package target decides which clusters get a bundle, and with which options:
// it matches targets, restrictions and customizations, merges options and fills
// the templates in values with what is known of each cluster.
//
// The package is pure. What it returns shares memory with its input and between
// clusters, and is read-only.
package target
