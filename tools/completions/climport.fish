# SPDX-License-Identifier: Apache-2.0
# fish completion for climport(1).  The words are those that the tool prints.

function __climport_commands
    climport help 2>/dev/null | string replace -rf '^  ([a-z]+) .*' '$1'
end

function __climport_options
    set -l words (commandline -opc)
    climport $words[2] --help 2>/dev/null | string match -ra -- '--[a-z][a-z0-9-]*'
end

complete -c climport -f
complete -c climport -n __fish_use_subcommand -a '(__climport_commands)'
complete -c climport -n '__fish_seen_subcommand_from help' -a '(__climport_commands)'
complete -c climport -n 'not __fish_use_subcommand; and not __fish_seen_subcommand_from help; and string match -q -- "-*" (commandline -ct)' -a '(__climport_options)'
complete -c climport -n '__fish_seen_subcommand_from run' -a '(__fish_complete_subcommand --fcs-skip=2)'
complete -c climport -n '__fish_seen_subcommand_from bench diag enable disable' -F
