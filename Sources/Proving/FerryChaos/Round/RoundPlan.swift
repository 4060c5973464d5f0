/// The parameters of a round.
struct RoundPlan: Sendable {
  /// The store of the server.
  enum Store: String, Sendable, CaseIterable { case postgres, embedded }

  /// The way in which the mirror captures the program's writes.
  enum Capture: String, Sendable, CaseIterable { case triggers, log }

  /// A program on the tables of a mirror.
  struct Program: Sendable {
    /// Transactions a second.
    var rate: Int
    /// Connections of the program.
    var workers: Int
    var store: Store
    var capture = Capture.triggers
    /// The interpreter with Django, for migrations of the tables meanwhile; `nil` without them.
    var django: String?
  }

  /// The position among the rounds, from 1.
  var number = 1
  var nemesis: Nemesis
  var seed: UInt64
  var devices: Int
  /// Transactions a second, over all devices.
  var rate: Int
  /// The time for faults and transactions.
  var duration: Duration
  /// The longest time of the queues to drain afterwards.
  var drainLimit: Duration

  /// The program beside the devices; `nil` for devices alone, on two nodes.
  var program: Program?

  /// Servers of the space.
  var nodes: Int { program == nil ? 2 : 1 }

  var milliseconds: Int { Int(duration / .milliseconds(1)) }

  /// Local transactions in all.
  var transactions: Int { max(1, rate * milliseconds / 1_000) }

  var faults: [Fault] {
    FaultSchedule.make(
      program.map { FaultKind.besideMirror($0.store) } ?? nemesis.kinds, seed: seed,
      devices: devices, nodes: nodes, milliseconds: milliseconds)
  }

  /// The name of the round's faults.
  var label: String { program == nil ? nemesis.rawValue : "backend" }

  /// The command to run the same plan again.
  var command: String {
    if let program {
      return "ferry-chaos backend --store \(program.store) --capture \(program.capture) "
        + "--devices \(devices) --rate \(rate) "
        + "--program-rate \(program.rate) --workers \(program.workers) "
        + (program.django == nil ? "" : "--migrations ")
        + "--duration \(milliseconds)ms --seed \(seed)"
    }
    return "ferry-chaos run --nemesis \(nemesis) --devices \(devices) --rate \(rate) "
      + "--duration \(milliseconds)ms --seed \(seed)"
  }
}
