import FerryLaboratory
import Foundation
import Synchronization

/// Injects a schedule's faults into a world's processes and connections, and ends them.
final class FaultDriver: Sendable {
  private let world: ProcessWorld
  private let deviceLinks: [LinkBoard]
  private let databaseLinks: [LinkBoard]
  private let mirrorLinks: [LinkBoard]
  private let programLinks: [LinkBoard]
  private let database: DatabaseOperator
  private let counts = Mutex<[FaultKind: Int]>([:])

  init(_ world: ProcessWorld) {
    self.world = world
    deviceLinks = world.devices.map { LinkBoard($0.proxy) }
    databaseLinks = world.nodes.compactMap { $0.databaseProxy.map(LinkBoard.init) }
    mirrorLinks = world.company.map { [LinkBoard($0.toServer), LinkBoard($0.toTables)] } ?? []
    programLinks = world.company.map { [LinkBoard($0.programToTables)] } ?? []
    database = DatabaseOperator(world.cluster, databases: world.databases)
  }

  /// Effective faults, by kind.
  var injected: [FaultKind: Int] { counts.withLock { $0 } }

  /// Performs the schedule. If it is cancelled, it ends present faults at once: on return, no fault
  /// is left.
  func run(_ faults: [Fault]) async {
    await withTaskGroup(of: Void.self) { group in
      for fault in faults { group.addTask { [self] in await perform(fault) } }
    }
    do {
      try await blocking { [database] in try database.waitUntilAnswering() }
    } catch {
      world.chronicle.append("nemesis", "PostgreSQL does not start again: \(error)")
    }
  }

  private func perform(_ fault: Fault) async {
    do {
      try await Task.sleep(for: .milliseconds(fault.at))
      world.chronicle.append("nemesis", fault.text)
      let undo = try await begin(fault)
      // Cancelled or not, it ends here.
      try? await Task.sleep(for: .milliseconds(fault.lasting))
      if try await undo() { counts.withLock { $0[fault.kind, default: 0] += 1 } }
      if fault.lasting > 0 { world.chronicle.append("nemesis", "end of \(fault.kind.rawValue)") }
    } catch is CancellationError {
      // Before it began.
    } catch {
      world.chronicle.append("nemesis", "\(fault.kind.rawValue) failed: \(error)")
    }
  }

  /// Ends a fault. Returns whether it took effect.
  private typealias Undo = @Sendable () async throws -> Bool

  private func begin(_ fault: Fault) async throws -> Undo {
    switch fault.kind {
    case .pauseDevice, .pauseServer, .pauseMirror, .pauseProgram: pause(fault)
    case .pauseBackends: try await database.pause(oneIn: fault.amount)
    case .killDevice, .killServer, .killMirror, .killProgram: kill(fault)
    case .killBackend: try await database.killBackend(fault.amount)
    case .restartDatabase:
      try await database.restart(.fast, pause: .milliseconds(fault.lasting))
    case .crashDatabase:
      try await database.restart(.immediate, pause: .milliseconds(fault.lasting))
    case .partition, .stallRequests, .stallAnswers, .slowLink, .stallDatabase, .stallMirror,
      .stallProgram:
      condition(fault)
    case .cutRequest, .cutAnswer: trap(fault)
    case .reset, .resetDatabase, .resetMirror, .resetProgram, .moveDevice: disconnect(fault)
    }
  }

  private func pause(_ fault: Fault) -> Undo {
    let stopped: [ChildProcess]
    if fault.kind == .pauseDevice {
      stopped = fault.targets.flatMap { world.devices[$0].pause() }
    } else {
      stopped = supervisors(of: fault).compactMap(\.child)
      for child in stopped { child.send(SIGSTOP) }
    }
    return {
      for child in stopped { child.send(SIGCONT) }
      return !stopped.isEmpty
    }
  }

  private func kill(_ fault: Fault) -> Undo {
    let world = world
    if fault.kind == .killDevice {
      let ran = fault.targets.map { world.devices[$0].stop() }
      return {
        for target in fault.targets { world.devices[target].release() }
        return ran.contains(true)
      }
    }
    let supervisors = supervisors(of: fault)
    let ran = supervisors.contains { $0.child != nil }
    for supervisor in supervisors { supervisor.stop() }
    return {
      for supervisor in supervisors { supervisor.release() }
      return ran
    }
  }

  /// Returns the programs, besides devices, stopped by a fault.
  private func supervisors(of fault: Fault) -> [Supervisor] {
    switch fault.kind {
    case .pauseMirror, .killMirror: world.company.map { [$0.mirrorRuns] } ?? []
    case .pauseProgram, .killProgram: world.company.map { [$0.program] } ?? []
    default: fault.targets.map { world.nodes[$0].supervisor }
    }
  }

  private func condition(_ fault: Fault) -> Undo {
    let links =
      switch fault.kind {
      case .stallMirror: mirrorLinks
      case .stallProgram: programLinks
      case .stallDatabase: fault.targets.map { databaseLinks[$0] }
      default: fault.targets.map { deviceLinks[$0] }
      }
    for link in links { link.set(fault.conditions, by: fault.ordinal) }
    return {
      for link in links { link.set(nil, by: fault.ordinal) }
      return true
    }
  }

  private func trap(_ fault: Fault) -> Undo {
    let direction = fault.kind == .cutRequest ? TCPProxy.Direction.request : .answer
    let traps = fault.targets.map {
      world.devices[$0].proxy.trap(
        direction, of: " /v1/", after: fault.amount, times: .max, .cut)
    }
    return {
      // A released trap is disarmed.
      for trap in traps { trap.release() }
      return traps.contains(where: \.hasSprung)
    }
  }

  private func disconnect(_ fault: Fault) -> Undo {
    var reset = 0
    if fault.kind == .resetMirror { reset = mirrorLinks.reduce(0) { $0 + $1.proxy.resetAll() } }
    if fault.kind == .resetProgram { reset = programLinks.reduce(0) { $0 + $1.proxy.resetAll() } }
    for target in fault.targets {
      if fault.kind == .resetDatabase {
        reset += databaseLinks[target].proxy.resetAll()
      } else {
        let proxy = world.devices[target].proxy
        if fault.kind == .moveDevice {
          proxy.retarget(to: world.nodes[(target + fault.amount) % world.nodes.count].port)
        }
        reset += proxy.resetAll()
      }
    }
    let hadConnections = reset > 0
    return { hadConnections }
  }
}

extension Fault {
  /// The conditions set by the fault on a link.
  fileprivate var conditions: LinkConditions {
    switch kind {
    case .stallRequests: LinkConditions(requests: .stalled)
    case .stallAnswers: LinkConditions(answers: .stalled)
    case .slowLink:
      LinkConditions(
        requests: .delayed(.milliseconds(amount)), answers: .delayed(.milliseconds(amount)))
    default: LinkConditions(requests: .stalled, answers: .stalled)
    }
  }
}
