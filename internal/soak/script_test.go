package soak_test

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// step is something that people do or that happens to programs. It tells what
// it did; "" where there was nothing to do it with.
type step struct {
	weight int
	name   string
	do     func(w *world) string
}

// steps are all of them.
var steps = []step{
	{3, "create", (*world).stepCreate},
	{6, "upgrade", (*world).stepUpgrade},
	{2, "spoil", (*world).stepSpoil},
	{2, "heal", (*world).stepHeal},
	{2, "rename", (*world).stepRename},
	{2, "remove", (*world).stepRemove},
	{1, "make anew", (*world).stepAnew},
	{2, "retarget", (*world).stepRetarget},
	{2, "relabel", (*world).stepRelabel},
	{3, "edit", (*world).stepEdit},
	{3, "move", (*world).stepMove},
	{2, "pause", (*world).stepPause},
	{1, "withdraw", (*world).stepWithdraw},
	{1, "depart", (*world).stepDepart},
	{2, "come back", (*world).stepComeBack},
	{3, "restart", (*world).stepRestart},
	{3, "cut", (*world).stepCut},
}

// play is one run.
func (w *world) play() {
	w.faults(true)
	for range 2 {
		w.take(steps[0])
	}
	for range 4 + w.rand.IntN(10) {
		w.take(w.draw())
		w.take(step{name: "git", do: (*world).gitStep})
		w.pause()
	}
	w.tidy()
	w.pause()
	w.faults(false)
	w.trace("the faults have ended")
	for _, c := range w.model.clusters {
		if c.away && !w.comeBack(c, w.pace.converge) {
			w.fail("the record of %s does not go", c.name)
		}
	}
	w.converge()
	w.quiet()
}

// draw picks a step by its weight.
func (w *world) draw() step {
	sum := 0
	for _, s := range steps {
		sum += s.weight
	}
	n := w.rand.IntN(sum)
	for _, s := range steps {
		if n -= s.weight; n < 0 {
			return s
		}
	}
	return steps[0]
}

func (w *world) take(s step) {
	if did := s.do(w); did != "" {
		w.trace("step: %s: %s", s.name, did)
	}
}

// pause lets time pass: often hardly any, so that steps overtake each other.
func (w *world) pause() {
	longest := []time.Duration{w.pace.step / 1000, w.pace.step / 1000, w.pace.step / 60, w.pace.step / 10, w.pace.step}[w.rand.IntN(5)]
	time.Sleep(time.Duration(w.rand.Int64N(int64(longest) + 1)))
}

// tidy ends what cannot become ready, and what nobody puts right by itself.
func (w *world) tidy() {
	for _, name := range slices.Sorted(maps.Keys(w.model.bundles)) {
		b := w.model.bundles[name]
		changed := b.bad || b.failing || b.paused || w.edited[name]
		b.bad, b.failing, b.paused = false, false, false
		if w.edited[name] {
			w.renew(b)
		}
		if changed {
			w.write(b)
			w.trace("tidy: %s", b)
		}
	}
	w.mendRepos()
}

// String describes a bundle.
func (b *bundle) String() string {
	text := fmt.Sprintf("%s on %v with %v", b.name, b.rings, b.objects)
	if b.repo != nil {
		text += " from " + b.repo.name
	}
	for word, on := range map[string]bool{
		" bad": b.bad, " failing": b.failing, " paused": b.paused, " correcting": b.correct, " hooks": b.hooks, " waves": b.waves, " chart": b.chart,
	} {
		if on {
			text += word
		}
	}
	return text
}

// any returns one of the bundles, or nil.
func (w *world) any() *bundle {
	all := slices.Sorted(maps.Keys(w.model.bundles))
	if len(all) == 0 {
		return nil
	}
	return w.model.bundles[all[w.rand.IntN(len(all))]]
}

func (w *world) anyRings() []string {
	return [][]string{{rings[0]}, {rings[1]}, rings, rings}[w.rand.IntN(4)]
}

// fresh returns a name that was never used.
func (w *world) fresh(kind string) string {
	w.made++
	return fmt.Sprintf("%s%d", kind, w.made)
}

// renew gives a new version to all objects of a bundle.
func (w *world) renew(b *bundle) {
	for name := range b.objects {
		b.objects[name] = w.model.next()
	}
}

func (w *world) stepCreate() string {
	b := &bundle{name: w.fresh("b"), rings: w.anyRings(), objects: map[string]int{}, correct: w.rand.IntN(2) == 0}
	b.traits = traits{hooks: w.rand.IntN(4) == 0, waves: w.rand.IntN(5) == 0, chart: w.rand.IntN(4) == 0}
	for range 1 + w.rand.IntN(3) {
		b.objects[w.fresh("o")] = w.model.next()
	}
	w.fromGit(b)
	w.write(b)
	return b.String()
}

func (w *world) stepUpgrade() string {
	b := w.any()
	if b == nil {
		return ""
	}
	all := slices.Sorted(maps.Keys(b.objects))
	if len(all) > 1 && w.rand.IntN(3) == 0 {
		delete(b.objects, all[w.rand.IntN(len(all))])
	}
	if w.rand.IntN(3) == 0 {
		b.objects[w.fresh("o")] = w.model.next()
	}
	for _, name := range slices.Sorted(maps.Keys(b.objects)) {
		if w.rand.IntN(2) == 0 {
			b.objects[name] = w.model.next()
		}
	}
	w.write(b)
	return b.String()
}

func (w *world) stepSpoil() string {
	b := w.any()
	if b == nil {
		return ""
	}
	b.failing = b.hooks && w.rand.IntN(2) == 0
	b.bad = !b.failing
	w.renew(b)
	w.write(b)
	return b.String()
}

func (w *world) stepHeal() string {
	for _, name := range slices.Sorted(maps.Keys(w.model.bundles)) {
		if b := w.model.bundles[name]; b.bad || b.failing {
			b.bad, b.failing = false, false
			w.write(b)
			return b.String()
		}
	}
	return ""
}

// stepRename is what a renamed directory makes: a new bundle with the objects
// of an old one, which goes.
func (w *world) stepRename() string {
	old := w.any()
	if old == nil || !w.known() {
		return ""
	}
	b := *old
	b.name, b.objects = w.fresh("b"), maps.Clone(old.objects)
	w.edited[b.name] = w.edited[old.name]
	if w.rand.IntN(2) == 0 {
		w.write(&b)
		w.pause()
		w.erase(old)
	} else {
		w.erase(old)
		w.write(&b)
	}
	return old.name + " is now " + b.String()
}

func (w *world) stepRemove() string {
	b := w.any()
	if b == nil || b.stays || !w.known() {
		return ""
	}
	w.erase(b)
	return b.name
}

// stepAnew deletes a bundle and makes it again under its name.
func (w *world) stepAnew() string {
	b := w.any()
	if b == nil || b.stays || !w.known() {
		return ""
	}
	w.erase(b)
	if !w.gone(b) {
		return b.name + " is not gone, and stays away"
	}
	w.watch.forget(w.model.names.fleet + "/" + b.name)
	w.write(b)
	return b.String()
}

func (w *world) stepRetarget() string {
	b := w.any()
	if b == nil || !w.known() {
		return ""
	}
	b.rings = w.anyRings()
	w.write(b)
	return b.String()
}

func (w *world) stepRelabel() string {
	c := w.model.clusters[w.rand.IntN(len(w.model.clusters))]
	ring := rings[w.rand.IntN(2)]
	if !w.known() {
		return ""
	}
	w.relabel(c, ring)
	return c.name + " is " + ring
}

// stepEdit changes or deletes an object by hand.
func (w *world) stepEdit() string {
	i := w.rand.IntN(len(w.model.clusters))
	on := w.model.on(w.model.clusters[i])
	if len(on) == 0 {
		return ""
	}
	b := on[w.rand.IntN(len(on))]
	all := slices.Sorted(maps.Keys(b.objects))
	name := all[w.rand.IntN(len(all))]
	byHand := []func(){func() {}, func() {}}
	obj := w.object(i, name)
	if obj == nil {
		return ""
	}
	byHand[0], byHand[1] = func() { w.edit(i, obj) }, func() { w.tear(i, obj) }
	kind := w.rand.IntN(2)
	byHand[kind]()
	w.edited[b.name] = w.edited[b.name] || !b.correct
	return []string{"edited ", "deleted "}[kind] + w.model.clusters[i].name + "/" + name + " of " + b.name
}

// stepMove moves an object from one bundle to another.
func (w *world) stepMove() string {
	from, to := w.any(), w.any()
	if from == to || len(from.objects) < 2 || !w.known() {
		return ""
	}
	all := slices.Sorted(maps.Keys(from.objects))
	name := all[w.rand.IntN(len(all))]
	to.objects[name] = w.model.next()
	delete(from.objects, name)
	w.edited[to.name] = w.edited[to.name] || w.edited[from.name]
	if w.rand.IntN(2) == 0 {
		from, to = to, from
	}
	w.write(from)
	w.write(to)
	return name + " between " + from.String() + " and " + to.String()
}

func (w *world) stepPause() string {
	b := w.any()
	if b == nil {
		return ""
	}
	b.paused = !b.paused
	w.write(b)
	return b.String()
}

// stepWithdraw deletes the deployments of a bundle on the hub by hand.
func (w *world) stepWithdraw() string {
	b := w.any()
	if b == nil {
		return ""
	}
	w.withdraw(b)
	return b.name
}

// stepDepart deletes the record of a cluster.
func (w *world) stepDepart() string {
	c := w.model.clusters[w.rand.IntN(len(w.model.clusters))]
	if c.away || w.removing(c) {
		return ""
	}
	w.departed = true
	w.depart(c)
	return c.name
}

func (w *world) stepComeBack() string {
	for _, c := range w.model.clusters {
		if c.away && w.comeBack(c, w.pace.step) {
			return c.name
		}
	}
	return ""
}

func (w *world) stepRestart() string {
	all := w.components()
	c := all[w.rand.IntN(len(all))]
	c.restart()
	return c.name
}

// stepCut cuts a line, or mends it.
func (w *world) stepCut() string {
	all := w.proxies()
	n := w.rand.IntN(len(all))
	w.cut[n] = !w.cut[n]
	all[n].Cut(w.cut[n])
	return fmt.Sprintf("%s: %v", all[n].Name(), w.cut[n])
}
