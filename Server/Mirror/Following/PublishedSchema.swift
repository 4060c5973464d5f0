import FerryProtocol

/// A schema of the space, published by a mirror.
struct PublishedSchema: Codable, Sendable, Equatable {
  var version: Int64
  private var document: String

  init(_ schema: SpaceSchema) {
    version = schema.version
    document = String(decoding: schema.encoded(), as: UTF8.self)
  }

  var schema: SpaceSchema? {
    var limits = Limits.standard
    (limits.schemaBytes, limits.schemaTables) = (.max, .max)
    return try? SpaceSchema(decoding: Array(document.utf8), limits: limits)
  }
}

/// The settings of a mirror that follows changed definitions.
extension MirrorConfiguration {
  /// True if the mirror follows changes of the company's tables. A group's mirrors share functions:
  /// they stop.
  var follows: Bool { group == nil && !adoptions.isEmpty }

  /// Returns the newest known schema of the space.
  ///
  /// - Parameter pulled: the schema of the last pull.
  func newest(_ pulled: SpaceSchema) -> SpaceSchema {
    guard let published, published.version > pulled.version else { return pulled }
    return published.schema ?? pulled
  }

  /// Returns the settings with followed tables.
  func following(_ tables: [FollowedTable], published schema: SpaceSchema) -> MirrorConfiguration {
    var configuration = self
    configuration.published = PublishedSchema(schema)
    configuration.renamed = renamed(with: tables)
    for table in tables {
      configuration.adoptions[table.name.text] = table.adoption
      let names = Set(adoptions[table.name.text]?.columns ?? []).union(table.adoption.columns)
      for name in names { configuration.types["\(table.name).\(name)"] = nil }
      for (column, type) in table.types {
        configuration.types["\(table.name).\(column)"] = type.rawValue
      }
    }
    return configuration
  }

  /// Returns the new names of columns, with those of followed tables.
  func renamed(with tables: [FollowedTable]) -> RenamedColumns {
    var names = renamed
    for table in tables { names.adapt(to: table) }
    return names
  }

  /// Returns the settings with which changed tables are described again: all columns travel unless a
  /// person has chosen some.
  func asked(with shapes: [MirrorLedger.OtherShape]) -> MirrorConfiguration {
    var configuration = self
    configuration.types = [:]
    configuration.tables = adoptions.keys.sorted()
    for (name, adoption) in adoptions {
      let shape = shapes.first { $0.table == Name(name) }
      configuration.adoptions[name]?.columns =
        adoption.isChosen
        ? shape?.presentNames(of: adoption.columns, renamed) ?? adoption.columns : []
    }
    return configuration
  }

  /// Returns `true` if other settings are of the same mirror, apart from changes that it follows.
  func isSame(as other: MirrorConfiguration) -> Bool {
    let both = [self, other].map { settings in
      var settings = settings
      (settings.types, settings.published, settings.renamed) = ([:], nil, RenamedColumns())
      settings.adoptions = settings.adoptions.mapValues { adoption in
        var adoption = adoption
        (adoption.carried, adoption.defaults, adoption.limits) = ([], [:], WriteLimits())
        if !adoption.isChosen { adoption.columns = [] }
        return adoption
      }
      return settings
    }
    return both[0] == both[1]
  }
}
