// Package templating fills in what texts between ${ and } say of a cluster: in
// the values of charts, and in objects where a bundle asks for it. Templates
// are Go's with the functions of sprig; none can run for ever, read the
// machine that it runs on, or give something else each time. The package is
// pure.
package templating
