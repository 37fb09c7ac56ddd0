set -e
mvn --quiet --batch-mode compile exec:java
