import FerryProtocol

/// An action of the simulated application's user in one local transaction.
package enum UserAction: String, Sendable, CaseIterable {
  /// Tables `notes(id, title, body, stars)`: concurrent edits of the same few records.
  case addNote
  case editNote
  case deleteNote
  /// Inserts a note under the id of a deleted one, or under an id open to another device too.
  case reviveNote
  /// Tables `lists(id, name)` and `items(id, list REFERENCES lists ON DELETE CASCADE, label,
  /// done)`.
  case addList
  case addItem
  case tickItem
  /// Now and then several of them in one transaction.
  case deleteList
  /// Table `ledger(id, txn, size, place)`: `size` rows of one transaction, never edited or deleted.
  case post
  /// The same with more rows than one packet holds.
  case postLarge
  /// Table `beats(id, n)`: one record for each device, which only it writes, counting up by one.
  case beat
  /// Edits several notes and items in one transaction.
  case editMany
  /// Table `tallies(id, votes)`, whose `votes` the space declares a counter: adds to some of them,
  /// on a replica with the declaration.
  case tally
  /// Sets columns of all notes or items that match a predicate: the result of
  /// ``Workload/batch(for:)``, and no statement.
  case batch
  /// Table `places(id, name, seats)`: writes that the server may reject.
  ///
  /// The space declares that names are unique and seats integers. Now and then one transaction also
  /// has an item, for a list of the user's choice.
  case claim
  /// Tables `drafts(id, body, pages)` and `vows`, for which the space declares that users are
  /// asked, and `pledges`, which has no rules. Values of the last two are NOT NULL. The actions
  /// edit the same few records, and their authors may or may not have seen each other's edits.
  case draft
  /// Table `slots(id, shelf, place)`: swaps, rotates and shifts places. Places are unique on a
  /// shelf, on devices and server, and checked on devices.
  case arrange
  /// Table `essays(id, list REFERENCES lists ON DELETE CASCADE, a, …, f)`: rows that grow, column
  /// by column, until they are rejected.
  case grow
  /// Table `paints(id, shade)`: an upgrade renames the column.
  case paint
  /// Tables `labels(id, code UNIQUE)` and `tags(id, code REFERENCES labels(code) ON UPDATE CASCADE,
  /// note)`: gives labels other codes, while others write tags. Labels are never deleted.
  case label
  /// Table `sheets(id, kept, sent, high, low, tags, body)`, whose columns have the remaining
  /// policies, and where edits win over deletes.
  case sheet
  /// Tables `clubs(id INTEGER)`, `members(id INTEGER, club REFERENCES clubs, name)` and
  /// `roles(club, title, holder, PRIMARY KEY(club, title))`: each device counts its own integers.
  case enrol
  /// Table `tasks(id, list, title, worth, maker)`, whose `list` has the space of each row: rows
  /// move between two spaces, and into none.
  case share
  /// Tables `shelves(id)`, `books(id, shelf REFERENCES shelves)` and
  /// `loans(id, book REFERENCES books)`, all with ON DELETE CASCADE. Changes the keys of parents
  /// and moves their children, in one transaction.
  case shelve
  /// Tables `stray_hubs`, `stray_nodes` and `stray_legs`, for which only some devices declare
  /// foreign keys and conditions: writes values that the others have to defer.
  case stray
  /// Tables `trunks`, `boughs`, `twigs`, `vines` and `nests`, whose rows go with their parents, or
  /// stay behind: grows, edits and cuts.
  case branch
  /// Tables of ``Workload/oddTables``, with odd names, types, keys and values.
  case odd
  /// Tables `boxes(id)`, `chips(id, box REFERENCES boxes ON DELETE CASCADE)`, `stacks(id, chips)` and
  /// `trail(id)`: triggers of the user count the chips, and log their deletes.
  case stack
  /// Tables `orders(id INTEGER)` and `order_lines(id INTEGER, order_id REFERENCES orders ON DELETE
  /// CASCADE)`: a company's sequences number the rows, and each device counts by itself.
  case order
  /// Answers a conflict, or undoes a write: no statement.
  case answer
}

/// An action at a moment. All of it is known from the seed before the run starts. So a failing run
/// can be shrunk by leaving actions out.
package struct PlannedAction: Sendable, Equatable {
  /// Names the action in shrunk histories.
  package var ordinal: Int
  /// Milliseconds since the start.
  package var at: Int64
  /// The device's place among the devices.
  package var device: Int
  package var action: UserAction
  /// The seed of the action's choices, so leaving another action out does not change it.
  package var seed: UInt64

  package init(ordinal: Int, at: Int64, device: Int, action: UserAction, seed: UInt64) {
    self.ordinal = ordinal
    self.at = at
    self.device = device
    self.action = action
    self.seed = seed
  }

  /// Why the user overrules other devices' values, now and then; `nil` otherwise.
  package var reason: String? {
    guard [.editNote, .deleteNote, .reviveNote].contains(action), seed % 9 == 0 else { return nil }
    return "rule \(ordinal)"
  }
}

/// A generator with named uses, so two uses never share a stream. SplitMix64 (Steele, Lea and
/// Flood, 2014).
package struct SeededRandom: RandomNumberGenerator, Sendable {
  private var state: UInt64

  package init(_ seed: UInt64) { state = seed }

  /// Creates a separate stream for `purpose`.
  package init(_ seed: UInt64, _ purpose: String) {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325 ^ seed
    for byte in purpose.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    state = hash
    _ = next()
  }

  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  /// Returns a number below `bound`, which is 1 at least.
  package mutating func below(_ bound: Int) -> Int {
    Int(next().multipliedFullWidth(by: UInt64(max(1, bound))).high)
  }

  /// Returns true `count` times in a `total`, on average.
  package mutating func chance(_ count: Int, in total: Int) -> Bool { below(total) < count }
}
