import Foundation

/// The journal of a program outside of its database, a JSON object a line.
///
/// A transaction has a line before its commit and one after it. Between them the program may be
/// killed, or lose the connection: then nobody has acknowledged the commit. A repeated attempt has
/// the same identifier.
package struct ProgramJournal: Sendable {
  /// The transactions of which at least the first line is there.
  package private(set) var writes: [AuthoredWrite] = []
  /// Reads of the whole of the tables.
  package private(set) var reads = 0
  /// Rules of the program found violated by a read.
  package private(set) var broken: [String] = []
  /// Unreadable lines: at most one for each kill of the program.
  package private(set) var torn = 0

  private struct Line: Decodable {
    var event: String
    var id: String?
    var inserted: [[String]]?
    var set: [[String]]?
    var deleted: [[String]]?
    var broken: [String]?
  }

  /// Reads a journal's text.
  package init(_ text: String, author: String) {
    var attempts: [(id: String, write: AuthoredWrite)] = []
    var places: [String: [Int]] = [:]
    for text in text.split(separator: "\n") {
      guard let line = try? JSONDecoder().decode(Line.self, from: Data(text.utf8)) else {
        torn += 1
        continue
      }
      switch line.event {
      case "commits":
        guard let id = line.id, let write = Self.write(line, author: author) else {
          torn += 1
          continue
        }
        places[id, default: []].append(attempts.count)
        attempts.append((id, write))
      case "committed":
        guard let id = line.id, let last = places[id]?.last else {
          torn += 1
          continue
        }
        attempts[last].write.isAcknowledged = true
      case "read":
        reads += 1
        broken += line.broken ?? []
      default: torn += 1
      }
    }
    // A transaction is committed once: the former attempts were rolled back.
    writes = attempts.enumerated().compactMap { place, attempt in
      let last = places[attempt.id]?.last ?? place
      return attempts[last].write.isAcknowledged && place != last ? nil : attempt.write
    }
  }

  private static func write(_ line: Line, author: String) -> AuthoredWrite? {
    var write = AuthoredWrite(author: author, isAcknowledged: false)
    for parts in line.inserted ?? [] {
      guard parts.count == 2 || parts.count == 4 else { return nil }
      let row = RowName(parts[0], parts[1])
      write.inserted.append(row)
      if parts.count == 4 { write.parents[row] = RowName(parts[2], parts[3]) }
    }
    for parts in line.set ?? [] {
      guard parts.count == 4 else { return nil }
      write.set.append(
        AuthoredWrite.Setting(RowName(parts[0], parts[1]), parts[2], parts[3]))
    }
    for parts in line.deleted ?? [] {
      guard parts.count == 2 else { return nil }
      write.deleted.append(RowName(parts[0], parts[1]))
    }
    return write
  }
}
