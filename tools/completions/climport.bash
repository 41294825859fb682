# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# bash completion for climport(1).  The words are those that the tool prints.

_climport() {
	local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
	local command=${COMP_WORDS[1]-} i words

	COMPREPLY=()
	if ((COMP_CWORD == 1)) || { ((COMP_CWORD == 2)) && [[ $command == help ]]; }; then
		words=$(climport help 2>/dev/null | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p')
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
		return
	fi
	case $command$previous in # `info --json` takes no file
	bench--json)
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
		return
		;;
	*--sysfs | *--root)
		mapfile -t COMPREPLY < <(compgen -d -- "$word")
		return
		;;
	run--version)
		mapfile -t COMPREPLY < <(compgen -W "1.0.0 1.1.0" -- "$word")
		return
		;;
	esac
	# The first word that is no option is the program that `run` starts.
	if [[ $command == run ]]; then
		for ((i = 2; i < COMP_CWORD; i++)); do
			[[ ${COMP_WORDS[i]} != --version ]] || { ((i++)); continue; }
			[[ ${COMP_WORDS[i]} != -- ]] || { ((i++)); break; }
			[[ ${COMP_WORDS[i]} == -* ]] || break
		done
		if [[ $word != -* || ${COMP_WORDS[i - 1]} == -- || $i -lt $COMP_CWORD ]]; then
			if declare -F _command_offset >/dev/null; then
				_command_offset "$i"
			else
				mapfile -t COMPREPLY < <(compgen -c -- "$word")
			fi
			return
		fi
	fi
	words=$(climport "$command" --help 2>/dev/null | grep -o -- '--[a-z][a-z0-9-]*')
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -F _climport climport
