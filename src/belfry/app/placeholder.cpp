namespace belfry {}
