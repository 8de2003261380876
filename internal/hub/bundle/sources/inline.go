package sources

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"sort"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/source"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// maxInline bounds what the inline resources of one bundle may decompress to,
// all together: it is the hub itself that unpacks and holds them.
const maxInline = 32 << 20

// errNoSource is why a bundle cannot be deployed yet.
var errNoSource = errors.New("the bundle has neither resources nor a stored source")

// inline takes in the resources of a bundle that was written by hand.
func inline(bundle *fleet.Bundle) (Files, error) {
	if len(bundle.Spec.Resources) == 0 {
		return Files{}, fault.Stall("NoSource", errNoSource)
	}
	var out Files
	room := maxInline
	for i, r := range bundle.Spec.Resources {
		data, err := decode(r, room)
		if err != nil {
			return Files{}, fault.Stall("InvalidResource", fmt.Errorf("spec.resources[%d] (%s): %w", i, r.Name, err))
		}
		room -= len(data)
		name := r.Name
		if name == "" {
			name = fmt.Sprintf("resource%03d.yaml", i)
		}
		out.Files = append(out.Files, source.File{Path: name, Data: data})
	}
	sort.SliceStable(out.Files, func(i, j int) bool { return out.Files[i].Path < out.Files[j].Path })
	out.Digest = source.Digest(out.Files)
	return out, nil
}

// decode returns the data of a resource, which may have no more than room bytes.
func decode(r fleet.BundleResource, room int) ([]byte, error) {
	switch r.Encoding {
	case "":
		return within(room, []byte(r.Content))
	case "base64+gz":
		packed, err := base64.StdEncoding.DecodeString(r.Content)
		if err != nil {
			return nil, fmt.Errorf("is not base64: %w", err)
		}
		reader, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			return nil, fmt.Errorf("is not gzip: %w", err)
		}
		data, err := io.ReadAll(io.LimitReader(reader, int64(room)+1))
		if err != nil {
			return nil, fmt.Errorf("is damaged: %w", err)
		}
		return within(room, data)
	default:
		return nil, fmt.Errorf("encoding %q is not known: use base64+gz or none", r.Encoding)
	}
}

func within(room int, data []byte) ([]byte, error) {
	if len(data) > room {
		return nil, fmt.Errorf("with it the resources of the bundle are larger than %d MiB, unpacked: split the bundle, or let a GitRepo bring it", maxInline>>20)
	}
	return data, nil
}
