import FerryPlatform

/// Writes a zsh completion script: one function a command, made of `_arguments`.
struct ZshCompletion {
  let root: CommandSpec

  var script: String {
    let function = root.completionFunction
    let functions = CompletionNode.all(of: root).map(self.function(for:))
    return """
      #compdef \(root.name)
      # zsh completion for \(root.name)

      \(functions.joined(separator: "\n\n"))

      \(function)_names() {
        local -a names=(${(f)"$(command $ferry_line[1] names $1 -- "${(Q)ferry_line[@]}" 2>/dev/null)"})
        compadd -a names
      }

      if [[ $funcstack[1] == \(function) ]]; then
        \(function) "$@"
      else
        compdef \(function) \(root.name)
      fi

      """
  }

  private func function(for node: CompletionNode) -> String {
    var specs = node.options.map(spec(of:)) + node.flags.flatMap(specs(of:))
    specs.append("'(- *)'{-h,--help}'[Show this help.]'")
    if root.version != nil, node.path == root.name {
      specs.append("'(- *)--version[Show the version.]'")
    }
    let name = functionName(node.path)
    return node.children.isEmpty
      ? leaf(name, specs + node.command.arguments.map(spec(of:)))
      : group(name, specs, node)
  }

  private func leaf(_ name: String, _ specs: [String]) -> String {
    """
    \(name)() {
      _arguments -s -S \\
        \(specs.joined(separator: " \\\n    "))
    }
    """
  }

  private func group(_ name: String, _ specs: [String], _ node: CompletionNode) -> String {
    let commands = node.children.map { "\($0.name):\($0.summary.escaping(":"))".shellQuoted }
    let cases = node.children.map { "\($0.name)) \(functionName("\(node.path) \($0.name)")) ;;" }
    return """
      \(name)() {
        local curcontext="$curcontext" context state state_descr line
        # Later functions see the rest of the line alone.
        (( $+ferry_line )) || local -a ferry_line=("${words[@]}")
        typeset -A opt_args
        _arguments -C -s -S \\
          \(specs.joined(separator: " \\\n    ")) \\
          '1:command:->command' \\
          '*::argument:->argument'
        case $state in
          command)
            local -a commands=(
              \(commands.joined(separator: "\n        "))
            )
            _describe command commands ;;
          argument)
            curcontext="${curcontext%:*}-$line[1]:"
            case $line[1] in
              \(cases.joined(separator: "\n        "))
            esac ;;
        esac
      }
      """
  }

  private func spec(of option: OptionSpec) -> String {
    let help = "[\(option.help.escaping("[]:"))]:\(option.valueName):\(action(option.kind))"
      .shellQuoted
    guard let short = option.short else {
      let star = option.isRepeated ? "*" : ""
      return "\("\(star)--\(option.name)=".shellQuoted)\(help)"
    }
    let exclusion = option.isRepeated ? "'*'" : "'(-\(short) --\(option.name))'"
    return "\(exclusion){-\(short)+,--\(option.name)=}\(help)"
  }

  private func specs(of flag: FlagSpec) -> [String] {
    let help = "[\(flag.help.escaping("[]:"))]".shellQuoted
    let negation = flag.isNegatable ? ["'--no-\(flag.name)'\(help)"] : []
    guard let short = flag.short else { return ["'--\(flag.name)'\(help)"] + negation }
    return ["'(-\(short) --\(flag.name))'{-\(short),--\(flag.name)}\(help)"] + negation
  }

  private func spec(of argument: ArgumentSpec) -> String {
    let place = argument.isRepeated ? "*:" : argument.isRequired ? ":" : "::"
    return "\(place)\(argument.name):\(action(argument.kind))".shellQuoted
  }

  private func action(_ kind: ValueKind) -> String {
    switch kind {
    case .text, .integer, .duration, .byteSize: " "
    case .file: "_files"
    case .directory: "_files -/"
    case .listed(let list): "\(root.completionFunction)_names \(list)"
    case .choice(let words): "(\(words.map { $0.escaping("() :\\") }.joined(separator: " ")))"
    }
  }

  private func functionName(_ path: String) -> String {
    let names = path.words().dropFirst().map { "__\($0)" }
    return root.completionFunction + names.joined()
  }
}

extension String {
  fileprivate func escaping(_ characters: String) -> String {
    map { characters.contains($0) ? "\\\($0)" : "\($0)" }.joined()
  }
}
