package commandline

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// candidate is a word that may stand at a place of a command line.
type candidate struct{ text, description string }

// complete returns the candidates for the last of the words, which may be empty, and whether a
// file's name may stand there instead.
func complete(root *kong.Node, words []string) (candidates []candidate, files bool) {
	words = slices.Clone(words)
	// bash splits --flag=value into three words.
	if n := len(words); n > 0 && words[n-1] == "=" {
		words[n-1] = ""
	}
	words = slices.DeleteFunc(words, func(w string) bool { return w == "=" })
	if len(words) == 0 {
		words = []string{""}
	}
	partial := words[len(words)-1]
	node, awaiting, positionals := walk(root, words[:len(words)-1])
	switch {
	case awaiting != nil:
		return values(awaiting.Value, partial, "")
	case strings.HasPrefix(partial, "--") && strings.Contains(partial, "="):
		name, value, _ := strings.Cut(partial, "=")
		flag := findFlag(node, name)
		if flag == nil {
			return nil, false
		}
		return values(flag.Value, value, name+"=")
	case strings.HasPrefix(partial, "-"):
		return flags(node, partial), false
	case len(node.Children) > 0:
		return commands(node, partial), false
	case len(node.Positional) > 0:
		return values(node.Positional[min(positionals, len(node.Positional)-1)], partial, "")
	default:
		return nil, false
	}
}

// walk follows complete words. It returns the command that they select, the flag whose value
// comes next, if any, and the number of the command's arguments.
func walk(node *kong.Node, words []string) (_ *kong.Node, awaiting *kong.Flag, positionals int) {
	for _, word := range words {
		switch {
		case awaiting != nil:
			awaiting = nil
		case strings.HasPrefix(word, "-"):
			if flag := findFlag(node, word); flag != nil && !flag.IsBool() && !flag.IsCounter() {
				awaiting = flag
			}
		default:
			i := slices.IndexFunc(node.Children, func(child *kong.Node) bool { return child.Name == word })
			if i < 0 {
				positionals++
				continue
			}
			node, positionals = node.Children[i], 0
		}
	}
	return node, awaiting, positionals
}

// findFlag returns the command's flag with that name, as --name or -n.
func findFlag(node *kong.Node, name string) *kong.Flag {
	for _, group := range node.AllFlags(true) {
		for _, flag := range group {
			if name == "--"+flag.Name || flag.Short != 0 && name == "-"+string(flag.Short) {
				return flag
			}
		}
	}
	return nil
}

func flags(node *kong.Node, partial string) (candidates []candidate) {
	for _, group := range node.AllFlags(true) {
		for _, flag := range group {
			if text := "--" + flag.Name; strings.HasPrefix(text, partial) {
				candidates = append(candidates, candidate{text, firstSentence(flag.Help)})
			}
		}
	}
	return candidates
}

func commands(node *kong.Node, partial string) (candidates []candidate) {
	for _, child := range node.Children {
		if !child.Hidden && strings.HasPrefix(child.Name, partial) {
			candidates = append(candidates, candidate{child.Name, firstSentence(child.Help)})
		}
	}
	return candidates
}

// values returns the candidates for the value of a flag or an argument. A value that is not one of
// a few may be a file only if its placeholder says so.
func values(v *kong.Value, partial, prefix string) (candidates []candidate, files bool) {
	if v.Enum == "" {
		return nil, v.Flag != nil && strings.Contains(v.Flag.PlaceHolder, "FILE") || v.Flag != nil && strings.Contains(v.Flag.PlaceHolder, "FOLDER") || v.Flag == nil && v.Tag.Type == "path"
	}
	for _, value := range v.EnumSlice() {
		if value != "" && strings.HasPrefix(value, partial) {
			candidates = append(candidates, candidate{prefix + value, ""})
		}
	}
	return candidates, false
}

// firstSentence returns the part of a help text that fits one line beside a candidate.
func firstSentence(help string) string {
	sentence, _, _ := strings.Cut(help, ". ")
	return strings.TrimSuffix(sentence, ".")
}
