extension WorldOptions {
  /// One option, by the name under which the command line and reports know it.
  package struct Field: Sendable {
    package let name: String
    package let help: String
    /// True if it is a fault, which 0 turns off.
    package let isFault: Bool
    package let get: @Sendable (WorldOptions) -> Int
    package let set: @Sendable (inout WorldOptions, Int) -> Void

    fileprivate init(
      _ name: String, _ path: WritableKeyPath<WorldOptions, Int> & Sendable, isFault: Bool = false,
      _ help: String
    ) {
      self.name = name
      self.help = help
      self.isFault = isFault
      get = { $0[keyPath: path] }
      set = { $0[keyPath: path] = $1 }
    }

    /// All options, in the order in which to show them.
    package static let all: [Field] = world + network + storage + events
  }

  private static var world: [Field] {
    [
      Field("devices", \.devices, "devices at the start"),
      Field("spaces", \.spaces, "spaces; devices belong to them in turn"),
      Field("mirrors", \.mirrors, "devices whose rows are in tables of PostgreSQL as well"),
      Field("company-rules", \.companyRules, "1: companies' tables refuse and change some rows"),
      Field(
        "company-keys", \.companyKeys,
        "1: companies' sequences number rows of some tables, and devices count by themselves"),
      Field(
        "held-rows", \.heldRows,
        "transactions of programs of a thousand that hold one row for seconds"),
      Field("joined", \.joined, "1: files join their space, after a first one"),
      Field("nodes", \.nodes, "nodes of the server, each with a clock of its own"),
      Field("operations", \.operations, "local transactions that users make"),
      Field("seconds", \.seconds, "virtual seconds in which faults happen"),
      Field("liveness-seconds", \.livenessSeconds, "virtual seconds to drain in after the heal"),
      Field("watchers", \.watchers, "devices of 100 that watch instead of syncing now and then"),
      Field("late-contacts", \.lateContacts, "devices of 100 that open without the server"),
      Field("sync-pause", \.syncPause, "mean pause between two syncs, milliseconds"),
      Field("upgrades", \.upgrades, "devices of 100 that get a newer schema in the run"),
      Field(
        "recorded-steps", \.recordedSteps,
        "1: the last step of the application's migrator writes rows as edits of its user"),
      Field("counters", \.counters, "transactions of a thousand that add to counters"),
      Field("batches", \.batches, "transactions of a thousand that set all records that match"),
      Field("claims", \.claims, "transactions of a thousand that the space's schema may forbid"),
      Field("drafts", \.drafts, "transactions of a thousand that edit what users are asked about"),
      Field("moves", \.moves, "transactions of a thousand that move unique values between rows"),
      Field("growth", \.growth, "transactions of a thousand that let rows grow to their limit"),
      Field(
        "cascades", \.cascades,
        "lists and items of a thousand transactions that are added, and lists that are deleted"),
      Field("paints", \.paints, "transactions of a thousand on a table whose column is renamed"),
      Field(
        "labels", \.labels,
        "transactions of a thousand that change values to which other rows refer, or such rows"),
      Field(
        "sheets", \.sheets,
        "transactions of a thousand that write to columns with policies of their own"),
      Field(
        "members", \.members,
        "transactions of a thousand on tables whose keys are integers of each device, or pairs"),
      Field(
        "shares", \.shares,
        "transactions of a thousand on a table with rows of two spaces; 0: files have one space"),
      Field(
        "shelves", \.shelves, "transactions of a thousand that move rows from deleted parents"),
      Field(
        "strays", \.strays,
        "transactions of a thousand on tables that only some devices define with foreign keys"),
      Field(
        "branches", \.branches,
        "transactions of a thousand on tables whose rows go with their parents, or stay behind"),
      Field(
        "odd", \.odd,
        "transactions of a thousand on tables with odd names and values, which one device defines"),
      Field(
        "stacks", \.stacks,
        "transactions of a thousand on tables whose triggers count and log rows in other tables"),
      Field(
        "answers", \.answers,
        "transactions of a thousand by which users answer conflicts or undo their writes"),
      Field(
        "strangers", \.strangers, "hostile members of each space, who send packets of every kind"),
      Field(
        "attacks", \.attacks,
        "1: hostile members also write to honest tables, and under identifiers of honest devices"),
      Field("lies", \.lies, "spans in which a hostile server answers one device, or all"),
      Field(
        "missions", \.missions,
        "missions that the server publishes, renews and retracts, with files"),
      Field(
        "bundles", \.bundles,
        "web apps that the server publishes in versions, some broken, for a share of the devices"),
      Field("packet-operations", \.packetOperations, "operations in a packet at most"),
      Field("page-changes", \.pageChanges, "changes in a page of a pull list at most"),
      Field(
        "retention", \.retention, "seconds for which the server keeps history; 0: 90 days, as usual"
      ),
      Field("prune-every", \.pruneEvery, "seconds between two runs that delete older history"),
      Field("clock-skew", \.clockSkew, "how far clocks are off, milliseconds either way"),
      Field("clock-drift", \.clockDrift, "how fast clocks drift, millionths either way"),
      Field("clock-step", \.clockStep, "steps in which clocks go on, milliseconds"),
    ]
  }

  private static var network: [Field] {
    [
      Field("drop", \.drop, isFault: true, "messages of a million that are lost"),
      Field("duplicate", \.duplicate, isFault: true, "requests of a million that come twice"),
      Field("corrupt", \.corrupt, isFault: true, "bodies of a million that are cut or overwritten"),
      Field("stall", \.stall, isFault: true, "connections of a million that fall silent"),
      Field("slow", \.slow, isFault: true, "answers of a million that take seconds"),
      Field("reset", \.reset, isFault: true, "connections of a million that are reset"),
      Field("delay-min", \.delayMin, "shortest delay of a message, milliseconds"),
      Field("delay-max", \.delayMax, "longest delay of a message, milliseconds"),
    ]
  }

  private static var storage: [Field] {
    [
      Field("disk-full", \.diskFull, isFault: true, "writes of a million that find the disk full"),
      Field("sync-failure", \.syncFailure, isFault: true, "fsyncs of a million that fail"),
      Field("disk-failure", \.diskFailure, isFault: true, "steps on a disk of a million that fail"),
      Field(
        "torn-write", \.tornWrite, isFault: true, "writes of a million in which a process dies"),
      Field(
        "crash", \.crash, isFault: true,
        "other steps of a million, of disk and network, at which a process dies"),
      Field(
        "fill-crash", \.fillCrash, isFault: true,
        "slices of first lists of a million at which a process dies"),
    ]
  }

  private static var events: [Field] {
    [
      Field("partitions", \.partitions, isFault: true, "links cut both ways for a while"),
      Field(
        "one-way-partitions", \.oneWayPartitions, isFault: true, "links cut one way for a while"),
      Field("device-crashes", \.deviceCrashes, isFault: true, "devices killed"),
      Field("device-power-losses", \.devicePowerLosses, isFault: true, "power losses of devices"),
      Field("server-crashes", \.serverCrashes, isFault: true, "times the server is killed"),
      Field(
        "server-power-losses", \.serverPowerLosses, isFault: true, "power losses of the server"),
      Field("clock-jumps", \.clockJumps, isFault: true, "leaps of a device's clock"),
      Field("copies", \.copies, isFault: true, "device files copied, both going on"),
      Field("restores", \.restores, isFault: true, "devices set back to an earlier copy"),
      Field(
        "server-restores", \.serverRestores, isFault: true,
        "times the server is set back to an earlier copy"),
      Field("absences", \.absences, isFault: true, "devices switched off for months"),
      Field(
        "batch-copies", \.batchCopies, isFault: true,
        "device files copied after a batch, the copy being started later"),
      Field("latecomers", \.latecomers, isFault: true, "devices that come late in the run"),
      Field(
        "node-clock-jumps", \.nodeClockJumps, isFault: true, "leaps of a server node's clock"),
      Field(
        "migrations", \.migrations, isFault: true,
        "tables created again, without a column, or not tracked for a time"),
      Field(
        "attachments", \.attachments, isFault: true,
        "users that attach another device's file and write to it"),
    ]
  }

  /// Faults by chance, of a million.
  package var ratios: [ChanceFault: Int] {
    [
      .drop: drop, .duplicate: duplicate, .corrupt: corrupt, .stall: stall, .slow: slow,
      .reset: reset, .diskFull: diskFull, .syncFailure: syncFailure, .diskFailure: diskFailure,
      .tornWrite: tornWrite, .crash: crash, .fillCrash: fillCrash,
    ]
  }
}
