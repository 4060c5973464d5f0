import FerryConformance
import FerryProtocol

/// The parts of a world and its faults. Everything is a whole number, so a world is the same on
/// every machine.
package struct WorldOptions: Sendable, Equatable {
  // MARK: The world

  /// Devices at the start; copies of their files come on top.
  package var devices = 20
  /// Spaces; devices belong to them in turn.
  package var spaces = 1
  /// Devices whose rows are in tables of PostgreSQL as well, where programs write to them.
  package var mirrors = 0
  /// If 1, the tables of companies refuse and change some rows of devices.
  package var companyRules = 0
  /// If 1, the sequences of companies number the rows of some tables.
  package var companyKeys = 0
  /// Transactions of programs of a thousand that hold one row for seconds.
  package var heldRows = 0
  /// If 1, the first space of each device's file is another one, and the file joins its space.
  package var joined = 0
  /// Local transactions by users.
  package var operations = 1_000
  /// Nodes of the server, each with a separate clock. Devices go from one to another.
  package var nodes = 1
  /// Virtual seconds of the safety phase, in which faults happen.
  package var seconds = 240
  /// Virtual seconds after the heal in which everything has to drain and converge.
  package var livenessSeconds = 600
  /// Devices of 100 that watch; the others sync now and then.
  package var watchers = 30
  /// Devices of 100 whose programs name the server when they open the replica, and make the first
  /// contact with the first sync. The others ask the server at once.
  package var lateContacts = 50
  /// Mean pause between two syncs of a device that does not watch, milliseconds.
  package var syncPause = 4_000
  /// Devices with an upgrade to the newer schema in the course of the run, of 100.
  package var upgrades = 50
  /// If 1, the application's last upgrade writes rows as edits of the user.
  package var recordedSteps = 0
  /// Additions to counters, of a thousand transactions.
  package var counters = Workload.Mix().counters
  /// Batches, of a thousand transactions.
  package var batches = Workload.Mix().batches
  /// Transactions of a thousand that the space's schema may forbid.
  package var claims = Workload.Mix().claims
  /// Edits of drafts, with questions to users about conflicts, of a thousand transactions.
  package var drafts = Workload.Mix().drafts
  /// Moves of unique values, of a thousand transactions.
  package var moves = Workload.Mix().moves
  /// Growth of rows, of a thousand transactions.
  package var growth = Workload.Mix().growth
  /// Additional lists and items beside the usual ones, and deleted lists, of a thousand
  /// transactions.
  package var cascades = Workload.Mix().cascades
  /// Writes to a table with a renamed column, of a thousand transactions.
  package var paints = Workload.Mix().paints
  /// Changes of referenced values, of a thousand transactions.
  package var labels = Workload.Mix().labels
  /// Writes to columns with separate policies, of a thousand transactions.
  package var sheets = Workload.Mix().sheets
  /// Writes to tables with keys of integers or pairs, of a thousand transactions.
  package var members = Workload.Mix().members
  /// Writes to a table with rows of two spaces, of a thousand transactions. Above 0, each file
  /// takes part in a second space, shared by all devices.
  package var shares = Workload.Mix().shares
  /// Moves of rows from parents before their delete, of a thousand transactions.
  package var shelves = Workload.Mix().shelves
  /// Transactions of a thousand on tables that only some devices define with foreign keys and
  /// conditions.
  package var strays = Workload.Mix().strays
  /// Transactions of a thousand on tables whose rows go with their parents.
  package var branches = Workload.Mix().branches
  /// Transactions of a thousand on tables with odd names, types and values, defined by one device.
  package var odd = Workload.Mix().odd
  /// Transactions of a thousand on tables whose triggers write to other tracked tables.
  package var stacks = Workload.Mix().stacks
  /// Answers to conflicts and undone writes, of a thousand transactions.
  package var answers = Workload.Mix().answers
  /// Hostile members of each space, who send packets of every kind.
  package var strangers = 0
  /// If 1, they also write to tables of the others, and under identifiers of honest devices.
  package var attacks = 0
  /// Missions published by the server, in several versions, and retracted.
  package var missions = 0
  /// Bundles published by the server, in several versions, promoted and withdrawn.
  package var bundles = 0

  // MARK: Small limits, so few operations reach them

  /// Operations in a packet at most.
  package var packetOperations = 1_000
  /// Changes in a page of a pull list at most.
  package var pageChanges = 5_000

  // MARK: Network: of a million messages each

  package var drop = 0
  package var duplicate = 0
  package var corrupt = 0
  /// The connection stays and no bytes come.
  package var stall = 0
  /// A slow reader: the response takes seconds.
  package var slow = 0
  package var reset = 0
  /// Delay of a message, milliseconds; later messages may arrive earlier.
  package var delayMin = 1
  package var delayMax = 20

  // MARK: Storage: of a million steps each

  package var diskFull = 0
  package var syncFailure = 0
  package var diskFailure = 0
  /// The process dies within a write.
  package var tornWrite = 0

  // MARK: Processes: of a million steps of their network and storage

  /// A process dies at the step.
  package var crash = 0
  /// A process dies at a slice of its first list.
  package var fillCrash = 0

  // MARK: Events: how many in a run

  /// Links cut both ways for a while.
  package var partitions = 0
  /// Links on which only one way is cut.
  package var oneWayPartitions = 0
  package var deviceCrashes = 0
  package var devicePowerLosses = 0
  package var serverCrashes = 0
  package var serverPowerLosses = 0
  /// A device's wall clock leaps, up to years, either way.
  package var clockJumps = 0
  /// A device's file is copied, and both continue.
  package var copies = 0
  /// A device's file is restored from an earlier copy.
  package var restores = 0
  /// The server's data is restored from an earlier copy.
  package var serverRestores = 0
  /// Devices switched off for months.
  package var absences = 0
  /// A device's file is copied right after a batch; the copy is started when the batch was sent,
  /// and perhaps pruned.
  package var batchCopies = 0
  /// Spans in which a hostile server answers one device, or all. See ``setLies(_:)``.
  package var lies = 0
  /// Devices that come late: their first list has all writes of the others.
  package var latecomers = 0
  /// A node's wall clock steps, up to a day, either way.
  package var nodeClockJumps = 0
  /// Tables that are created again, lose a column, or are not tracked for a time.
  package var migrations = 0
  /// Users with another device's attached file and with writes to its tables.
  package var attachments = 0

  // MARK: The server's memory

  /// Seconds for which the server keeps history and tombstones; 0 for the default of new spaces.
  package var retention = 0
  /// Seconds between two runs of the pruner.
  package var pruneEvery = 600

  // MARK: Clocks

  /// The difference of a device's clock at the start, milliseconds either way.
  package var clockSkew = 0
  /// The drift of the clock, millionths either way.
  package var clockDrift = 0
  /// The step of a device's clock, milliseconds: coarse steps make writes concurrent in one moment.
  package var clockStep = 1

  package init() {}
}

extension WorldOptions {
  /// True if the application has tables with different definitions on devices. Mirrors have other
  /// tables.
  var hasStrays: Bool { mirrors == 0 && (strays > 0 || strangers > 0) }
  /// True if it has the tables whose rows go with their parents.
  var hasBranches: Bool { mirrors == 0 && branches > 0 }
  /// True if one device defines tables with odd names, and the others create them.
  var hasOdd: Bool { mirrors == 0 && odd > 0 }

  /// True if the application has triggers that write to tracked tables.
  var hasStacks: Bool { mirrors == 0 && stacks > 0 }

  /// True if companies' sequences number the rows of some tables.
  var hasOrders: Bool { mirrors > 0 && companyKeys > 0 }

  /// Orders of a thousand transactions, in such a world.
  private static let orders = 150

  /// Sets of options for one kind of place.
  package enum Profile: String, Sendable, CaseIterable {
    /// No faults.
    case calm
    /// Phones: slow and lossy links, processes that come and go, clocks a little off.
    case mobile
    /// Every kind of fault, often.
    case hostile
  }

  /// The frequency of actions that need the space's schema.
  var mix: Workload.Mix {
    var mix = Workload.Mix()
    mix.counters = counters
    mix.batches = batches
    mix.claims = claims
    mix.drafts = drafts
    mix.moves = moves
    mix.growth = growth
    mix.cascades = cascades
    mix.paints = paints
    mix.labels = labels
    mix.sheets = sheets
    mix.members = members
    mix.shares = shares
    mix.shelves = shelves
    mix.strays = strays
    mix.answers = answers
    mix.branches = hasBranches ? branches : 0
    mix.odd = hasOdd ? odd : 0
    mix.stacks = hasStacks ? stacks : 0
    mix.orders = hasOrders ? Self.orders : 0
    return mix
  }

  package init(_ profile: Profile) {
    self.init()
    switch profile {
    case .calm: break
    case .mobile: setMobile()
    case .hostile:
      setMobile()
      setHostile()
    }
  }

  private mutating func setMobile() {
    (drop, duplicate, stall, slow, reset) = (10_000, 2_000, 2_000, 5_000, 10_000)
    (delayMin, delayMax) = (20, 800)
    (partitions, oneWayPartitions) = (10, 2)
    (deviceCrashes, devicePowerLosses, serverCrashes) = (10, 2, 1)
    (clockJumps, clockSkew, clockDrift) = (1, 3_000, 100)
  }

  private mutating func setHostile() {
    (drop, duplicate, corrupt, stall) = (40_000, 40_000, 10_000, 10_000)
    (slow, reset) = (20_000, 40_000)
    (diskFull, syncFailure, diskFailure, tornWrite) = (150, 150, 100, 150)
    (crash, fillCrash) = (1_000, 50_000)
    (partitions, oneWayPartitions) = (20, 10)
    (deviceCrashes, devicePowerLosses) = (20, 10)
    (serverCrashes, serverPowerLosses) = (5, 3)
    (clockJumps, copies, restores, absences) = (8, 2, 3, 1)
    serverRestores = 1
    (clockSkew, clockDrift) = (600_000, 1_000)
    (packetOperations, pageChanges, spaces) = (12, 25, 2)
    (nodes, nodeClockJumps, batchCopies) = (2, 3, 1)
    (migrations, attachments, latecomers) = (3, 2, 2)
  }

  /// Draws small worlds of every kind from the seed, for a swarm.
  package static func drawn(seed: UInt64, devices: Int, operations: Int) -> WorldOptions {
    var random = SeededRandom(seed, "options")
    var options = WorldOptions(.hostile)
    options.devices = 2 + random.below(max(1, 2 * devices - 3))
    options.operations = operations / 2 + random.below(max(1, operations))
    options.seconds = 30 + random.below(120)
    options.spaces = random.chance(1, in: 4) ? 2 : 1
    options.watchers = random.below(101)
    options.syncPause = 200 + random.below(6_000)
    options.packetOperations = [3, 12, 40, 120][random.below(4)]
    options.pageChanges = [2, 5, 25, 5_000][random.below(4)]
    options.delayMin = 1 + random.below(30)
    options.delayMax = options.delayMin + random.below(1_500)
    options.clockSkew = [0, 1_000, 600_000, 86_400_000][random.below(4)]
    for field in Field.all where field.isFault && !drawnApart.contains(field.name) {
      // A third of all faults is absent in a world, the rest is between 0 and twice as much.
      let usual = field.get(options)
      field.set(&options, random.chance(1, in: 3) ? 0 : random.below(2 * usual + 2))
    }
    options.clockStep = [1, 1, 1_000, 60_000][random.below(4)]
    // After a restore of the server, oracles accept more: so not in every world. These have
    // separate streams, so they change no other draw.
    var setBacks = SeededRandom(seed, "server-restores")
    options.serverRestores = setBacks.chance(1, in: 3) ? 1 + setBacks.below(3) : 0
    // A device keeps a version later than the catalogue's until its number comes again. After a
    // restore of the server, the publisher may not publish that often: such a world would not
    // drain.
    var missions = SeededRandom(seed, "missions")
    if missions.chance(1, in: 6), options.serverRestores == 0 {
      options.missions = 1 + missions.below(3)
    }
    // As with missions. Outcomes lost by a server are not reported again.
    var bundles = SeededRandom(seed, "bundles")
    if bundles.chance(1, in: 6), options.serverRestores == 0 {
      options.bundles = 1 + bundles.below(2)
    }
    options.drawRetention(seed: seed)
    options.drawNodes(seed: seed)
    var copies = SeededRandom(seed, "batch-copies")
    options.batchCopies = copies.chance(1, in: 3) ? 1 + copies.below(3) : 0
    var migrations = SeededRandom(seed, "migrations")
    options.migrations = migrations.chance(1, in: 3) ? 1 + migrations.below(5) : 0
    var joined = SeededRandom(seed, "joined")
    options.joined = joined.chance(1, in: 4) ? 1 : 0
    var shares = SeededRandom(seed, "shares")
    options.shares = shares.chance(1, in: 4) ? 50 + shares.below(250) : 0
    var recorded = SeededRandom(seed, "recorded-steps")
    options.recordedSteps = recorded.chance(1, in: 3) ? 1 : 0
    var attachments = SeededRandom(seed, "attachments")
    options.attachments = attachments.chance(1, in: 3) ? 1 + attachments.below(3) : 0
    var strays = SeededRandom(seed, "strays")
    options.strays = strays.chance(1, in: 4) ? 20 + strays.below(150) : 0
    options.strangers = strays.chance(1, in: 6) ? 1 + strays.below(2) : 0
    var answers = SeededRandom(seed, "answers")
    options.answers = answers.chance(1, in: 2) ? 20 + answers.below(150) : 0
    var branches = SeededRandom(seed, "branches")
    options.branches = branches.chance(1, in: 3) ? 40 + branches.below(200) : 0
    var odd = SeededRandom(seed, "odd")
    options.odd = odd.chance(1, in: 4) ? 40 + odd.below(200) : 0
    var latecomers = SeededRandom(seed, "latecomers")
    options.latecomers = latecomers.chance(1, in: 3) ? 1 + latecomers.below(2) : 0
    options.fillCrash = latecomers.chance(1, in: 2) ? 100_000 : 0
    var stacks = SeededRandom(seed, "stacks")
    options.stacks = stacks.chance(1, in: 3) ? 30 + stacks.below(150) : 0
    return options
  }

  /// Gives a drawn world mirrors. A third of such worlds has companies with rules.
  package mutating func setMirrors(_ count: Int, seed: UInt64) {
    mirrors = count
    guard count > 0 else { return }
    // A mirror's file belongs to one space.
    (joined, shares) = (0, 0)
    var random = SeededRandom(seed, "company-rules")
    companyRules = random.chance(1, in: 3) ? 1 : 0
  }

  /// Makes a hostile server lie, in a world without any lost file.
  ///
  /// A file back in an earlier state loses work confirmed by a lie, and months of lies outlast a
  /// device's archive.
  package mutating func setLies(_ count: Int) {
    lies = count
    guard count > 0 else { return }
    (copies, restores, batchCopies, serverRestores) = (0, 0, 0, 0)
    (devicePowerLosses, absences, retention, pruneEvery) = (0, 0, 0, WorldOptions().pruneEvery)
    (missions, bundles, odd) = (0, 0, 0)
  }

  /// Faults with separate streams, so they change no other draw.
  private static let drawnApart: Set<String> = [
    "server-restores", "batch-copies", "node-clock-jumps", "migrations",
    "attachments", "latecomers", "fill-crash",
  ]

  private mutating func drawNodes(seed: UInt64) {
    var random = SeededRandom(seed, "nodes")
    nodes = 1 + random.below(3)
    nodeClockJumps = random.chance(1, in: 2) ? 1 + random.below(6) : 0
  }
}
