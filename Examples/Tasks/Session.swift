import Ferry
import Foundation

/// Runs the commands that the user types.
actor Session {
  private let store: TaskStore
  private let isTerminal: Bool
  /// The live view and the watch, while they run.
  private var live: [Task<Void, Never>] = []

  static let help = """
    list NAME          add a list
    add LIST TITLE     add a task to the list with this number
    done N             check task N, or uncheck it
    title N TEXT       rename task N
    share LIST SPACE   move the list to a space of its own, for several people
    invite LIST        make a link for one other person
    accept LINK        take part in another person's list
    join SPACE         take part on this device, too
    members LIST       show the people who take part
    leave LIST         leave the list's space, and delete its lists here
    show               show all lists
    sync               exchange changes with the server
    conflicts          show values that lost against another device's
    keep C lost|now    choose one of the values of conflict C
    live               show the lists after each change, and stay in sync; again: stop
    quit
    """

  /// A command that cannot be run, with the reason for the user.
  private struct Mistake: Error { var reason: String }

  init(_ store: TaskStore, isTerminal: Bool) { (self.store, self.isTerminal) = (store, isTerminal) }

  /// Runs a line. Returns whether the session goes on.
  func run(_ line: String) async -> Bool {
    let words = line.split(separator: " ", maxSplits: 2).map(String.init)
    guard let command = words.first else { return true }
    if command == "quit" { return false }
    do {
      try await run(command, words.count > 1 ? words[1] : "", words.count > 2 ? words[2] : "")
    } catch let mistake as Mistake {
      write("\(mistake.reason); type help for the commands")
    } catch ReplicaError.offline(let reason) {
      write("offline: \(reason). Your changes stay here, and the next sync sends them.")
    } catch ReplicaError.refused(let problem) {
      write("the server refuses this: \(problem.detail)")
    } catch {
      write("\(error.localizedDescription)")
    }
    return true
  }

  private func run(_ command: String, _ first: String, _ rest: String) async throws {
    switch command {
    case "help": write(Self.help)
    case "show": try await show()
    case "list": try await store.addList(try text(first + (rest.isEmpty ? "" : " " + rest)))
    case "add": try await store.addTask(try text(rest), to: try await list(first))
    case "done": try await store.toggle(try await task(first))
    case "title": try await store.setTitle(try text(rest), of: try await task(first))
    case "share": try await store.share(try await list(first), as: try text(rest))
    case "invite": write("\(try await store.invite(to: try await shared(first)))")
    case "accept": try await store.accept(try text(first))
    case "join": try await store.join(try text(first))
    case "members": try await showMembers(first)
    case "leave": try await store.leave(try await shared(first))
    case "sync": write((try await store.sync()).summary ?? "nothing new")
    case "conflicts": try await showConflicts()
    case "keep": try await keep(first, rest)
    case "live": toggleLive()
    default: throw Mistake(reason: "there is no command \(command)")
    }
  }

  private func text(_ words: String) throws -> String {
    guard !words.isEmpty else { throw Mistake(reason: "a name is missing") }
    return words
  }

  private func list(_ number: String) async throws -> TaskList {
    try pick(number, of: try await store.sections().map(\.list), "list")
  }

  private func shared(_ number: String) async throws -> TaskList {
    let list = try await list(number)
    guard list.space != store.home else { throw Mistake(reason: "share list \(number) first") }
    return list
  }

  private func task(_ number: String) async throws -> Todo {
    try pick(number, of: try await store.sections().flatMap(\.tasks), "task")
  }

  private func pick<Item>(_ number: String, of items: [Item], _ kind: String) throws -> Item {
    guard let index = Int(number), items.indices.contains(index - 1) else {
      throw Mistake(reason: "there is no \(kind) \(number)")
    }
    return items[index - 1]
  }

  // MARK: Views

  private func show() async throws {
    write(page(try await store.sections()))
    let pending = try await store.pendingCount()
    if pending > 0 { write("\(pending) changes wait for the next sync") }
  }

  /// Returns the lists as text: lists and tasks have the numbers that commands take.
  private nonisolated func page(_ sections: [Section]) -> String {
    var lines: [String] = []
    var number = 0
    for (index, section) in sections.enumerated() {
      let space = section.list.space
      let note = space == store.home ? "" : " (shared as \(space))"
      lines.append("\(index + 1). \(section.list.name)\(note)")
      for task in section.tasks {
        number += 1
        lines.append("  \(number) [\(task.done ? "x" : " ")] \(task.title)")
      }
    }
    return lines.isEmpty ? "no lists yet" : lines.joined(separator: "\n")
  }

  private func showMembers(_ number: String) async throws {
    for member in try await store.members(of: try await shared(number)) {
      write("\(member.user.name) (\(member.role))")
    }
  }

  private func showConflicts() async throws {
    let found = try await store.disagreements()
    if found.isEmpty { write("no conflicts") }
    for (index, one) in found.enumerated() {
      let conflict = one.kept.conflict
      let author = one.kept.isLosersOwn ? "this device" : "another device"
      let lost = conflict.column == nil ? "the record" : Self.shown(conflict.lost)
      let now = if case .value(let value) = one.now { Self.shown(value) } else { "\(one.now)" }
      write("\(index + 1). \(conflict.column?.text ?? "task"): \(author) lost \(lost); now \(now)")
    }
  }

  private static func shown(_ value: Value) -> String {
    if case .text(let text) = value { "\"\(text)\"" } else { "\(value)" }
  }

  private func keep(_ number: String, _ side: String) async throws {
    guard ["lost", "now"].contains(side) else { throw Mistake(reason: "keep lost, or now?") }
    let conflict = try pick(number, of: try await store.disagreements(), "conflict")
    try await store.settle(conflict, takingLost: side == "lost")
  }

  private func toggleLive() {
    guard live.isEmpty else {
      for task in live { task.cancel() }
      return live = []
    }
    live = [
      Task {
        do {
          for try await sections in store.liveSections() {
            // A terminal shows the newest lists alone.
            write((isTerminal ? "\u{1B}[H\u{1B}[2J" : "") + page(sections))
          }
        } catch { write("the live view ended: \(error.localizedDescription)") }
      },
      Task {
        do { try await store.watch() } catch ReplicaError.cancelled, ReplicaError.closed {
        } catch { write("not in sync: \(error.localizedDescription)") }
      },
    ]
  }

  private func write(_ text: String) {
    FileHandle.standardOutput.write(Data((text + "\n").utf8))
  }
}
