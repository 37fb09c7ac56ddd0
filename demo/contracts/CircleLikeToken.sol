// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

/// A token with the storage layout of Circle's: behind a proxy, with as many words before the balances. A bit of each balance says whether its
/// owner is blacklisted, and each transfer checks three accounts. It uses more gas than a plain token.
contract CircleLikeToken {
    /// The balances are in slot 9. The first words say who the minter is, and whether the token is paused.
    address private minter;
    bool private paused;
    uint256[3] private roles;
    string public name;
    string public symbol;
    uint8 public decimals;
    uint256[2] private more;
    mapping(address => uint256) private balancesAndBlacklist;
    mapping(address => mapping(address => uint256)) public allowance;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);

    uint256 private constant BLACKLISTED = 1 << 255;

    modifier allowed(address account) {
        require(!paused, "Pausable: paused");
        require(balancesAndBlacklist[account] & BLACKLISTED == 0, "Blacklistable: account is blacklisted");
        _;
    }

    function initialize(string memory name_, string memory symbol_, uint8 decimals_, address minter_) external {
        require(minter == address(0), "already initialized");
        (name, symbol, decimals, minter) = (name_, symbol_, decimals_, minter_);
    }

    function balanceOf(address account) public view returns (uint256) {
        return balancesAndBlacklist[account] & ~BLACKLISTED;
    }

    function mint(address to, uint256 value) external {
        require(msg.sender == minter, "only the minter mints");
        balancesAndBlacklist[to] += value;
        emit Transfer(address(0), to, value);
    }

    function blacklist(address account) external {
        require(msg.sender == minter, "only the minter blacklists");
        balancesAndBlacklist[account] |= BLACKLISTED;
    }

    function approve(address spender, uint256 value) external allowed(msg.sender) allowed(spender) returns (bool) {
        allowance[msg.sender][spender] = value;
        emit Approval(msg.sender, spender, value);
        return true;
    }

    function transfer(address to, uint256 value) external returns (bool) {
        move(msg.sender, to, value);
        return true;
    }

    function transferFrom(address from, address to, uint256 value) external allowed(msg.sender) returns (bool) {
        require(value <= allowance[from][msg.sender], "ERC20: transfer amount exceeds allowance");
        move(from, to, value);
        allowance[from][msg.sender] -= value;
        return true;
    }

    function move(address from, address to, uint256 value) private allowed(from) allowed(to) {
        require(to != address(0), "ERC20: transfer to the zero address");
        require(value <= balanceOf(from), "ERC20: transfer amount exceeds balance");
        balancesAndBlacklist[from] = balanceOf(from) - value;
        balancesAndBlacklist[to] = balanceOf(to) + value;
        emit Transfer(from, to, value);
    }
}
