package config

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/relaypool/relaypool/relay/commandline"
)

// signInMessages returns the configured texts. If it returns none, the profile's texts apply.
// The environment variable contains one text only, because a text may contain commas and line
// breaks. A file can contain several texts.
func (s Serve) signInMessages() ([]string, error) {
	flag, messages := "sign-in-messages", slices.Clone(s.SignInMessages)
	if s.SignInMessagesFile != "" {
		if len(messages) > 0 {
			return nil, commandline.Problem(flag, "is set, and so is %s: give one", commandline.Setting("sign-in-messages-file"))
		}
		flag = "sign-in-messages-file"
		content, err := readFile(flag, s.SignInMessagesFile, "list the messages in it")
		if err != nil {
			return nil, err
		}
		if err := yaml.Unmarshal(jsonAsYAML(content), &messages); err != nil || len(messages) == 0 { // the parser's error repeats the content
			return nil, commandline.Problem(flag, "its content of %d bytes is not a list: expected a YAML or JSON list of texts, at least one", len(content))
		}
	}
	if i := slices.Index(messages, ""); i >= 0 {
		return nil, commandline.Problem(flag, "message %d of %d is empty: give its text, or leave it out for the profile's", i+1, len(messages))
	}
	return messages, nil
}
