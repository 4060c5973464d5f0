import FerryCommandLine
import FerrySyncServer

/// The quotas of one user, and of one space, as options of `ferryd serve`.
enum QuotaOptions {
  static let options = [
    OptionSpec(
      "quota-bytes", value: "SIZE",
      help: "Bytes of the records by which one user may make a space grow.", kind: .byteSize,
      default: "64GiB", environment: "FERRY_QUOTA_BYTES"),
    OptionSpec(
      "quota-records", value: "N", help: "Records by which one user may make a space grow.",
      kind: counted, default: "50000000", environment: "FERRY_QUOTA_RECORDS"),
    OptionSpec(
      "quota-space-bytes", value: "SIZE", help: "Bytes of all records of a space.",
      kind: .byteSize, default: "256GiB", environment: "FERRY_QUOTA_SPACE_BYTES"),
    OptionSpec(
      "quota-space-records", value: "N", help: "All records of a space.", kind: counted,
      default: "100000000", environment: "FERRY_QUOTA_SPACE_RECORDS"),
    OptionSpec(
      "quota-daily-bytes", value: "SIZE",
      help: "Bytes that one user may write to a space's history in a day.", kind: .byteSize,
      default: "64GiB", environment: "FERRY_QUOTA_DAILY_BYTES"),
    OptionSpec(
      "quota-space-daily-bytes", value: "SIZE",
      help: """
        Bytes that all users may write to a space's history in a day; above it, a user who wrote \
        less than a sixty-fourth of it goes on.
        """,
      kind: .byteSize, default: "256GiB", environment: "FERRY_QUOTA_SPACE_DAILY_BYTES"),
    OptionSpec(
      "quota-buffered-packets", value: "N",
      help: "Packets of one user that a space buffers until earlier ones arrive.", kind: counted,
      default: "5000", environment: "FERRY_QUOTA_BUFFERED_PACKETS"),
    OptionSpec(
      "quota-buffered-bytes", value: "SIZE", help: "Bytes of those packets.", kind: .byteSize,
      default: "512MiB", environment: "FERRY_QUOTA_BUFFERED_BYTES"),
    OptionSpec(
      "quota-space-buffered-packets", value: "N",
      help:
        "Such packets of all users of a space; a half is for users with less than a sixty-fourth.",
      kind: counted, default: "50000", environment: "FERRY_QUOTA_SPACE_BUFFERED_PACKETS"),
    OptionSpec(
      "quota-space-buffered-bytes", value: "SIZE", help: "Bytes of those packets.",
      kind: .byteSize, default: "4GiB", environment: "FERRY_QUOTA_SPACE_BUFFERED_BYTES"),
    OptionSpec(
      "quota-devices", value: "N", help: "Device identifiers of one user in a space.",
      kind: counted, default: "10000", environment: "FERRY_QUOTA_DEVICES"),
    OptionSpec(
      "quota-space-devices", value: "N",
      help: "Device identifiers of a space; a half is for users with less than a sixty-fourth.",
      kind: counted, default: "100000", environment: "FERRY_QUOTA_SPACE_DEVICES"),
    OptionSpec(
      "quota-spaces", value: "N", help: "Spaces that one user may create.", kind: counted,
      default: "10000", environment: "FERRY_QUOTA_SPACES"),
    OptionSpec(
      "quota-tokens", value: "N", help: "Tokens that an admin of spaces may make.", kind: counted,
      default: "10000", environment: "FERRY_QUOTA_TOKENS"),
    OptionSpec(
      "quota-streams", value: "N",
      help: "Event streams that one user may have open at this server.",
      kind: counted, default: "1000", environment: "FERRY_QUOTA_STREAMS"),
    OptionSpec(
      "quota-unpublished", value: "SIZE",
      help: "Bytes of a space's uploads that are finished and that no mission names yet.",
      kind: .byteSize, default: "256GiB", environment: "FERRY_QUOTA_UNPUBLISHED"),
    OptionSpec(
      "quota-unpublished-files", value: "N", help: "The number of those uploads.",
      kind: counted, default: "200000", environment: "FERRY_QUOTA_UNPUBLISHED_FILES"),
  ]

  private static let counted = ValueKind.integer(1...1_000_000_000_000)

  static func quotas(_ arguments: ParsedArguments) throws -> Quotas {
    var quotas = Quotas()
    quotas.principalBytes = Int64(try arguments.byteSize("quota-bytes"))
    quotas.principalRecords = Int64(try arguments.integer("quota-records"))
    quotas.spaceBytes = Int64(try arguments.byteSize("quota-space-bytes"))
    quotas.spaceRecords = Int64(try arguments.integer("quota-space-records"))
    quotas.dailyBytes = Int64(try arguments.byteSize("quota-daily-bytes"))
    quotas.spaceDailyBytes = Int64(try arguments.byteSize("quota-space-daily-bytes"))
    quotas.bufferedPackets = Int64(try arguments.integer("quota-buffered-packets"))
    quotas.bufferedBytes = Int64(try arguments.byteSize("quota-buffered-bytes"))
    quotas.spaceBufferedPackets = Int64(try arguments.integer("quota-space-buffered-packets"))
    quotas.spaceBufferedBytes = Int64(try arguments.byteSize("quota-space-buffered-bytes"))
    quotas.spaceDevices = Int64(try arguments.integer("quota-space-devices"))
    quotas.devices = Int64(try arguments.integer("quota-devices"))
    quotas.spaces = Int64(try arguments.integer("quota-spaces"))
    quotas.tokens = Int64(try arguments.integer("quota-tokens"))
    quotas.streams = try arguments.integer("quota-streams")
    quotas.unpublishedBytes = Int64(try arguments.byteSize("quota-unpublished"))
    quotas.unpublishedFiles = Int64(try arguments.integer("quota-unpublished-files"))
    return quotas
  }
}
