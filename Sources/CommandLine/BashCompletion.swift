import FerryPlatform

/// Writes a bash completion script; it runs in bash 3.2 and later and needs no bash-completion.
struct BashCompletion {
  let root: CommandSpec

  var script: String {
    let nodes = CompletionNode.all(of: root)
    let function = root.completionFunction
    return """
      # bash completion for \(root.name)
      \(function)() {
        local cur=${COMP_WORDS[COMP_CWORD]} path=\(root.name.shellQuoted)
        local option= word i=1 place=0 ended=
        COMPREPLY=()
        # Which command is it, which option waits for its value, how many arguments are there?
        while (( i < COMP_CWORD )); do
          word=${COMP_WORDS[i]}
          (( i++ ))
          if [[ $ended ]]; then (( place++ )); continue; fi
          case "$path $word" in
      \(valueOptions(nodes))
            *" --") ended=1 ;;
            *" -"*) ;;
      \(descents(nodes))
            *) (( place++ )) ;;
          esac
        done
        [[ $cur == "=" && $option ]] && cur=
        if [[ $option ]]; then
          case "$path $option" in
      \(optionValues(nodes, function))
          esac
          return
        fi
        if [[ $cur == -* && ! $ended ]]; then
          case $path in
      \(optionNames(nodes, function))
          esac
          return
        fi
        case "$path $place" in
      \(places(nodes, function))
        esac
      }
      \(function)_words() {
        COMPREPLY=($(compgen -W "$1" -- "$2"))
      }
      \(function)_paths() {
        local path
        compopt -o filenames 2>/dev/null
        while IFS= read -r path; do COMPREPLY+=("$path"); done < <(compgen "$1" -- "$2")
      }
      \(function)_names() {
        local name
        while IFS= read -r name; do
          [[ $name == "$2"* ]] && COMPREPLY+=("$(printf %q "$name")")
        done < <(command "${COMP_WORDS[0]}" names "$1" -- "${COMP_WORDS[@]}" 2>/dev/null)
      }
      complete -F \(function) \(root.name)

      """
  }

  /// Returns the shell's case for options with a value. Such an option takes the next word, and a
  /// `=` before it.
  private func valueOptions(_ nodes: [CompletionNode]) -> String {
    let patterns = nodes.flatMap { node in
      node.options.flatMap(\.spellings).map { "\(node.path) \($0)".shellQuoted }
    }
    if patterns.isEmpty { return "      '') ;;" }
    return """
            \(patterns.joined(separator: "|")))
              [[ ${COMP_WORDS[i]} == "=" ]] && (( i++ ))
              if (( i >= COMP_CWORD )); then option=$word; else (( i++ )); fi ;;
      """
  }

  private func descents(_ nodes: [CompletionNode]) -> String {
    let patterns = nodes.dropFirst().map { $0.path.shellQuoted }
    if patterns.isEmpty { return "      '') ;;" }
    return """
            \(patterns.joined(separator: "|")))
              if (( place == 0 )); then path="$path $word"; else (( place++ )); fi ;;
      """
  }

  private func optionValues(_ nodes: [CompletionNode], _ function: String) -> String {
    let lines = nodes.flatMap { node in
      node.options.compactMap { option -> String? in
        guard let action = action(option.kind, function) else { return nil }
        let patterns = option.spellings.map { "\(node.path) \($0)".shellQuoted }
        return "      \(patterns.joined(separator: "|"))) \(action) ;;"
      }
    }
    return (lines + ["      *) ;;"]).joined(separator: "\n")
  }

  private func optionNames(_ nodes: [CompletionNode], _ function: String) -> String {
    nodes.map { node in
      var names = node.options.map { "--\($0.name)" }
      names += node.flags.flatMap { ["--\($0.name)"] + ($0.isNegatable ? ["--no-\($0.name)"] : []) }
      names.append("--help")
      if root.version != nil, node.path == root.name { names.append("--version") }
      return "      \(node.path.shellQuoted)) \(words(names, function)) ;;"
    }.joined(separator: "\n")
  }

  private func places(_ nodes: [CompletionNode], _ function: String) -> String {
    var lines: [String] = []
    for node in nodes {
      if !node.children.isEmpty {
        let path = "\(node.path) 0".shellQuoted
        lines.append("    \(path)) \(words(node.children.map(\.name), function)) ;;")
        continue
      }
      for (index, argument) in node.command.arguments.enumerated() {
        guard let action = action(argument.kind, function) else { continue }
        let pattern =
          argument.isRepeated
          ? "\(node.path) ".shellQuoted + "*" : "\(node.path) \(index)".shellQuoted
        lines.append("    \(pattern)) \(action) ;;")
      }
    }
    return (lines + ["    *) ;;"]).joined(separator: "\n")
  }

  private func action(_ kind: ValueKind, _ function: String) -> String? {
    switch kind {
    case .text, .integer, .duration, .byteSize: nil
    case .file: "\(function)_paths -f \"$cur\""
    case .directory: "\(function)_paths -d \"$cur\""
    case .listed(let list): "\(function)_names \(list) \"$cur\""
    case .choice(let choices): words(choices, function)
    }
  }

  /// Returns words for `compgen -W`, which expands them as the shell does. So each is escaped
  /// before it is quoted.
  private func words(_ words: [String], _ function: String) -> String {
    let escaped = words.map { word in
      // text: words of the program's own specification
      word.map { $0.isLetter || $0.isNumber || $0 == "-" ? "\($0)" : "\\\($0)" }.joined()
    }
    return "\(function)_words \(escaped.joined(separator: " ").shellQuoted) \"$cur\""
  }
}

extension OptionSpec {
  /// `--name` and, with a letter, `-n`.
  var spellings: [String] { ["--\(name)"] + (short.map { ["-\($0)"] } ?? []) }
}
