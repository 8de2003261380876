// Package apply turns the objects of one bundle into running objects by
// server-side apply, and takes away what the bundle no longer has.
//
// Ownership is judged per object: an object that another bundle or another
// GitOps tool has is refused by name, and the bundle's other objects go on. A
// new object is applied on the condition that it does not exist, a known one on
// the condition that it is the one that was applied before. Both cost a single
// request, and nothing is overwritten by a race; only where the condition fails
// is the object read and judged.
//
// Inventory goes in and inventory comes out: what is pruned is the difference,
// and what could not be deleted stays listed.
package apply
